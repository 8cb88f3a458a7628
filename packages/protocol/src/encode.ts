import type { AgentDownFrame, AgentUpFrame, DownFrame, RequestId, UpFrame } from './frame.js';
import type { Cursor } from './ids.js';

const utf8 = new TextEncoder();

/** A frame as bytes: `{"v":1,` always comes first, so that fields can be spliced in behind it without parsing. */
export function encode(frame: UpFrame | DownFrame | AgentUpFrame | AgentDownFrame): Uint8Array {
  return utf8.encode(JSON.stringify({ v: 1, ...frame }));
}

const prefix = utf8.encode('{"v":1,');

/**
 * The same frame with `"cursor":n` and/or `"id":x` spliced in: one buffer, no parsing. The stored bytes carry
 * neither, so that one encoding serves every device; what this splices must never already be in `frame`.
 * @param frame bytes made by {@link encode}
 */
export function splice(frame: Uint8Array, fields: { cursor?: Cursor; id?: RequestId }): Uint8Array {
  let text = '';
  if (fields.id !== undefined) text += `"id":${JSON.stringify(fields.id)},`;
  if (fields.cursor !== undefined) text += `"cursor":${fields.cursor},`;
  if (text === '') return frame;
  const added = utf8.encode(text);
  const out = new Uint8Array(frame.length + added.length);
  out.set(prefix, 0);
  out.set(added, prefix.length);
  out.set(frame.subarray(prefix.length), prefix.length + added.length);
  return out;
}
