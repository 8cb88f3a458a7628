import { limits } from './limits.js';

/** What a frame says first. */
export interface Glance {
  readonly type: string;
  readonly id?: number | string;
}

/** Bytes that are looked at. */
const head_bytes = 256;
/** One member of the envelope whose value needs no reading on: plain letters, a whole number, or null. */
const member = /\s*"([a-z_]+)"\s*:\s*(?:"([ !#-[\]-~]*)"|(-?(?:0|[1-9]\d{0,14}))|(null))\s*([,}])/y;

/**
 * Type and id of a frame, from its first bytes alone: for what is refused whatever else it says, and must cost no more than that. Undefined when they
 * do not stand in front of the payload, or not plainly: then it has to be decoded. What follows is not looked at, not even whether it is JSON.
 */
export function glance(data: Uint8Array): Glance | undefined {
  const head = latin1.decode(data.subarray(0, head_bytes));
  const begin = /^\s*\{/.exec(head);
  if (begin === null) return undefined;
  member.lastIndex = begin[0].length;
  let type: string | undefined;
  let id: number | string | undefined;
  for (;;) {
    const found = member.exec(head);
    if (found === null) return undefined;
    const [, name, text, number, , end] = found;
    if (name === 'type') type = text;
    if (name === 'id') {
      id = text ?? (number === undefined ? undefined : Number(number));
      if (id === undefined || id === '' || (typeof id === 'string' && id.length > limits.request_id_length)) return undefined;
    }
    if (type !== undefined && id !== undefined) return { type, id };
    if (end === '}') return type === undefined ? undefined : { type };
  }
}

const latin1 = new TextDecoder('latin1');
