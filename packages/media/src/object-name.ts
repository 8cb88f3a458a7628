import { createHash } from 'node:crypto';

const plain = /^[0-9a-z_-]{1,128}$/;

/**
 * An id as a name for a file or a part of an object's key. Ids that we give stay readable; any other string, whatever is in it, becomes
 * a hash, so that none can leave its folder, be too long, or meet another where case doesn't count.
 */
export const objectName = (id: string): string => (plain.test(id) ? id : `~${createHash('sha256').update(id).digest('hex')}`);
