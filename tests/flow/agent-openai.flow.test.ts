import { startAgent } from '@iris/agent';
import { silentLog } from '@iris/runtime';
import { type AnyFrame, agentProcess, lane, onStage, type Stage } from '@iris/testkit';
import { expect, test } from '@jest/globals';

const idle = (frame: AnyFrame) => frame.type === 'agent.idle';
interface Asked {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
}
const bytes = (value: object | string) =>
  new TextEncoder().encode(`data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`);

/** The runner's `openai` backend in the world; the endpoint counts its answers, a word every 50 ms, and never ends when asked to talk on. */
async function attached({ world, tenant }: Stage) {
  const { clock, connect } = agentProcess(world, 'agent');
  const asked: Asked[] = [];
  let gone = 0;
  const pause = (signal: AbortSignal | undefined) =>
    new Promise<void>((resolve, reject) => {
      const aborted = () => {
        timer.cancel();
        gone++;
        reject(signal!.reason as Error);
      };
      const timer = clock.after(50, () => {
        signal?.removeEventListener('abort', aborted);
        resolve();
      });
      signal?.addEventListener('abort', aborted);
    });
  async function* words(body: Asked, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
    const endless = body.messages.at(-1)?.content === 'talk on';
    for (let i = 0; endless || i < 3; i++) {
      await pause(signal);
      yield bytes({ model: 'acme/tiny', choices: [{ delta: { content: i === 0 ? `answer ${asked.length}` : ` word${i}` } }] });
    }
    yield bytes({ choices: [{ delta: {}, finish_reason: 'stop' }], usage: { prompt_tokens: 90, completion_tokens: 10 } });
    yield bytes('[DONE]');
  }
  const agent = startAgent({
    gateway: 'ws://world/agent',
    token: tenant.agent_token,
    backend: 'openai',
    url: 'http://model.test/v1',
    model: { agent_model: 'acme/tiny', context_tokens: 1_000 },
    log: silentLog,
    clock,
    random: world.chance.fork('agent').unit,
    connect,
    http: async (url, { body = '', signal } = {}) => {
      const streamed = url.endsWith('/chat/completions');
      if (streamed) asked.push(JSON.parse(body) as Asked);
      return {
        status: streamed ? 200 : 404,
        header: () => (streamed ? 'text/event-stream' : undefined),
        chunks: streamed ? words(asked.at(-1)!, signal) : (async function* () {})(),
      };
    },
  });
  await world.patience.wait(() => agent.online || undefined, { describe: () => 'the agent is not online' });
  await world.settle();
  return { asked, gone: () => gone };
}
const said = (one: Asked) => one.messages.map(({ role, content }) => `${role}: ${content}`);

test('an answer streams to every device, and the next question has what the gateway kept: no commands, nothing deleted', () =>
  onStage(
    async (stage) => {
      const { a, b } = stage;
      const { asked } = await attached(stage);
      await a.send('first');
      const [one] = await Promise.all([a, b].map((device) => device.next('message.stop')));
      expect(one!.payload).toMatchObject({
        final_text: 'answer 1 word1 word2',
        model: 'tiny',
        tokens: 10,
        runtime: { model: 'tiny', context_pct: 10, latency: expect.any(Number) },
      });
      expect(b.frames('message.update').length).toBeGreaterThan(0);
      await a.next(idle);

      await a.send('/help');
      expect((await b.next((frame) => frame.payload.role === 'system')).payload.text).toContain('/undo');
      await a.next(idle);
      await b.send('second');
      await a.next(idle);
      expect(said(asked[1]!)).toEqual(['user: first', 'assistant: answer 1 word1 word2', 'user: second']);

      expect((await a.request('message.delete', { message_ids: [one!.payload.message_id as string] }, lane)).type).toBe('message.deleted');
      await a.send('third');
      await a.next(idle);
      expect(said(asked[2]!)).toEqual(['user: first\n\nsecond', 'assistant: answer 2 word1 word2', 'user: third']);

      await a.send('/undo');
      await b.next((frame) => frame.type === 'message.deleted' && (frame.payload.message_ids as string[]).length === 2);
      await a.next(idle);
      await a.send('/new');
      await a.next(idle);
      await a.send('fourth');
      await a.next(idle);
      expect(said(asked[3]!)).toEqual(['user: fourth']);
    },
    { agent: false },
  ));

test('/stop from another device ends the request, and what was written stays', () =>
  onStage(
    async (stage) => {
      const { a, b } = stage;
      const model = await attached(stage);
      await a.send('talk on');
      await b.next('message.update');
      await b.send('/stop');
      const { payload } = await a.next('message.stop');
      expect(payload.final_text).toMatch(/^answer 1/);
      await a.next(idle);
      expect(model.gone()).toBe(1);
      expect(a.frames('message.stop')[0]).toMatchObject(lane);
    },
    { agent: false },
  ));
