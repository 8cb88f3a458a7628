import { readFileSync } from 'node:fs';
import { parseRules, type Rule } from '@iris/protocol/documents';

/** The rules of SPEC.md, in its order. */
export const specRules = (): Rule[] => parseRules(readFileSync(new URL('../../../protocol/SPEC.md', import.meta.url), 'utf8'));
