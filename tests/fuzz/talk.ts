import { type AnyFrame, type Dial, faultOf, type Patience } from '@iris/testkit';
import { answerable, type Sent } from './frames.js';

/** What a device that says anything at all was told. */
export interface Talk {
  readonly frames: readonly AnyFrame[];
  readonly closed: number | undefined;
  readonly faults: readonly string[];
}

/**
 * Say all of it on one connection, and wait until it is answered or closed.
 * @param first said before; a hello, if there is one
 * @param within_ms for the answers: more than any request may take
 */
export async function talk(
  dial: Dial,
  patience: Patience,
  { first, sent, within_ms }: { first?: object; sent: readonly Sent[]; within_ms: number },
): Promise<Talk> {
  const frames: AnyFrame[] = [];
  const faults: string[] = [];
  let closed: number | undefined;
  const wire = await dial({
    message(data) {
      if (typeof data !== 'string') return;
      const frame = JSON.parse(data) as AnyFrame;
      frames.push(frame);
      if (!data.startsWith('{"v":1,')) faults.push(`ENV19: ${data.slice(0, 100)}`);
      const fault = faultOf(frame, 'down');
      if (fault !== undefined) faults.push(`${fault}: ${data.slice(0, 200)}`);
      if (frame.type === 'error' && frame.payload.code === 'internal') faults.push(`internal: ${data.slice(0, 200)}`);
      patience.stir();
    },
    ping: (data) => wire.pong(data),
    closed(code) {
      closed = code;
      patience.stir();
    },
  });
  if (first !== undefined) wire.send(JSON.stringify(first));
  for (const one of sent) {
    if (one.kind === 'text') wire.send(one.text);
    else wire.send(one.bytes, one.as);
  }
  wire.send('{"type":"ping","id":"the end"}');

  const wanted = new Map<string | number, { count: number; exactly: boolean }>();
  for (const one of sent) {
    const question = answerable(one);
    if (question === undefined) continue;
    const before = wanted.get(question.id) ?? { count: 0, exactly: true };
    wanted.set(question.id, { count: before.count + 1, exactly: before.exactly && question.exactly });
  }
  const got = (id: string | number) => frames.filter((frame) => frame.id === id).length;
  const missing = () => [...wanted].filter(([id, { count, exactly }]) => exactly && got(id) < count).map(([id]) => id);
  const done = () => (closed !== undefined || (got('the end') > 0 && missing().length === 0) ? true : undefined);
  await patience
    .wait(done, { within_ms, describe: () => '' })
    .catch(() => faults.push(`never answered: ${JSON.stringify(missing())}${got('the end') > 0 ? '' : ', nor the ping behind it'}`));
  for (const [id, { count, exactly }] of wanted)
    if (exactly && got(id) > count) faults.push(`id ${JSON.stringify(id)} was sent ${count} times and answered ${got(id)} times`);
  wire.close();
  return { frames, closed, faults };
}
