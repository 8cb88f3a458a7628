import type { Check } from '../check.js';
import { channel } from './channel.js';
import { env } from './env.js';
import { kee, ord } from './flow.js';
import { hel } from './hel.js';
import { limits } from './limits.js';
import { link } from './link.js';
import { media } from './media.js';
import { msg } from './msg.js';
import { picker } from './picker.js';
import { search } from './search.js';
import { turns } from './turns.js';

/** Everything that is asked, in order: what floods a gateway comes last. */
export const checks: readonly Check[] = [
  ...hel,
  ...env,
  ...kee,
  ...ord,
  ...msg,
  ...turns,
  ...picker,
  ...channel,
  ...search,
  ...media,
  ...link,
  ...limits,
];
