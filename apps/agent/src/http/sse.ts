export interface ServerEvent {
  /** `message` unless the server named it. */
  readonly event: string;
  readonly data: string;
  readonly id?: string;
}

/** Characters of one event above which its source is no event stream. */
const event_max = 4 * 1024 * 1024;

/**
 * Server-sent events, however they are cut into chunks: lines end in CR, LF or both, comments and unknown fields are nothing, an
 * event at the end of the stream counts even without the blank line that should follow it.
 * @throws Error when one event is endless
 */
export async function* serverEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  // It also takes the byte order mark away, which may stand first.
  const decoder = new TextDecoder();
  let rest = '';
  let fields: { event?: string; data?: string; id?: string } = {};
  /** The next LF belongs to the line end that is behind us. */
  let afterCr = false;

  const line = (text: string): ServerEvent | undefined => {
    if (text === '') {
      const { event = 'message', data, id } = fields;
      fields = {};
      return data === undefined ? undefined : { event, data, ...(id === undefined ? {} : { id }) };
    }
    const colon = text.indexOf(':');
    const name = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? '' : text.slice(text[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (name === 'data') fields = { ...fields, data: fields.data === undefined ? value : `${fields.data}\n${value}` };
    else if (name === 'event' || name === 'id') fields = { ...fields, [name]: value };
    return undefined;
  };

  for await (const chunk of chunks) {
    rest += decoder.decode(chunk, { stream: true });
    for (;;) {
      if (afterCr && rest.length > 0) {
        if (rest[0] === '\n') rest = rest.slice(1);
        afterCr = false;
      }
      const at = rest.search(/[\r\n]/);
      if (at < 0) break;
      const text = rest.slice(0, at);
      afterCr = rest[at] === '\r';
      rest = rest.slice(at + 1);
      const event = line(text);
      if (event) yield event;
    }
    if (rest.length + (fields.data?.length ?? 0) > event_max) throw new Error('an event of the stream is too long');
  }
  rest += decoder.decode();
  if (rest !== '') line(rest);
  const last = line('');
  if (last) yield last;
}
