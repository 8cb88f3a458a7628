import type { Payload } from '../../frames.js';
import { type Check, type Ctx, like, must, refused, shown } from '../check.js';

const choices = [
  { value: 'yes', label: 'Yes', is_current: true, style: 'primary' },
  { value: 'no', label: 'No' },
];
const kinds: Readonly<Record<string, Payload>> = {
  choice: { title: 'Which?', body: 'One of these', choices },
  confirm: { title: 'Sure?', choices },
  approval: { title: 'May I?', command: 'rm -r build', choices },
  clarify: { question: 'What do you mean?', allow_text: true, multi: false },
  model: {
    title: 'Model',
    current_model: 'm1',
    current_provider: 'p',
    providers: [{ id: 'p', label: 'P', models: [{ id: 'm1', label: 'M1' }] }],
  },
};
const good: Readonly<Record<string, string>> = { choice: 'no', confirm: 'yes', approval: 'yes', clarify: 'any words', model: 'p/m1' };

/** A turn with a picker of this kind open, seen by two devices. */
async function asking(ctx: Ctx, kind: string, more: Payload = {}) {
  const actor = await ctx.actor();
  const [device, other] = [await ctx.join('phone'), await ctx.join('tablet', { door: 1 })];
  const { turn } = await actor.turn(device, ctx.text(`picks ${kind}`), ctx.lane);
  const own = turn.picker(kind, { ...kinds[kind], ...more });
  const shownTo = [await device.next(`picker.${kind}`), await other.next(`picker.${kind}`)];
  const picker_id = shownTo[0]!.payload.picker_id!;
  const finish = async () => {
    turn.end();
    await device.next('agent.idle');
  };
  return { actor, device, other, turn, own, picker_id, shownTo, finish };
}

export const picker: readonly Check[] = [
  {
    rules: ['PIC1', 'PIC2', 'PIC3', 'PIC4', 'PIC5', 'PIC6', 'PIC7', 'PIC8', 'PIC9', 'PIC10', 'PIC13', 'LNK42'],
    needs: ['agent'],
    async run(ctx) {
      const ids = new Set<string>();
      for (const kind of Object.keys(kinds)) {
        const { actor, device, other, own, picker_id, shownTo, finish } = await asking(ctx, kind, { flavour: { odd: true } });
        must(
          'PIC2',
          typeof picker_id === 'string' && picker_id !== own && !ids.has(picker_id),
          `picker_id ${picker_id} (the agent's is ${own})`,
        );
        ids.add(picker_id);
        const rule = kind === 'clarify' ? 'PIC5' : kind === 'model' ? 'PIC6' : 'PIC4';
        for (const frame of shownTo)
          like(rule, frame, { type: `picker.${kind}`, chat_id: ctx.lane.chat_id, payload: { ...kinds[kind], picker_id } });
        like('PIC7', shownTo[0], { payload: { flavour: { odd: true } } });
        actor.agent.received.skip();
        if (kind !== 'clarify')
          refused('PIC9', await device.request('picker.select', { picker_id, value: 'never offered' }), 'unsupported', 'value');
        like('PIC13', await device.request('picker.select', { picker_id, value: good[kind]! }), { type: 'ack', payload: { ok: true } });
        like('PIC10', await other.next('picker.closed'), { payload: { picker_id, value: good[kind] } });
        like('LNK42', await actor.agent.next('picker.select'), { payload: { value: good[kind] } });
        refused('PIC8', await other.request('picker.select', { picker_id, value: good[kind]! }), 'not_found');
        await finish();
      }
      return `${ids.size} kinds: shown, answered once, closed for the other device, told to the agent`;
    },
  },
  {
    rules: ['PIC11', 'LNK43'],
    needs: ['agent'],
    async run(ctx) {
      const { actor, device, picker_id, finish } = await asking(ctx, 'choice', { expires_at: ctx.target.patience.now() + 400 });
      like('PIC11', await device.next('picker.closed'), { payload: { picker_id, expired: true } });
      like('PIC11', await actor.agent.next('picker.closed'), { payload: { reason: 'expired' } });
      refused('PIC11', await device.request('picker.select', { picker_id, value: 'yes' }), 'not_found');
      await finish();
      return 'picker.closed {expired:true}, the agent is told, an answer is not_found';
    },
  },
  {
    rules: ['PIC12'],
    needs: ['agent'],
    async run(ctx) {
      const { device, picker_id, finish } = await asking(ctx, 'confirm');
      device.received.skip();
      await finish();
      const closed = device.frames('picker.closed').filter((frame) => frame.payload.picker_id === picker_id);
      must('PIC12', closed.length === 1, `the turn's end came with ${shown(closed)}`);
      refused('PIC12', await device.request('picker.select', { picker_id, value: 'yes' }), 'not_found');
      return 'it closes with its turn, before agent.idle';
    },
  },
  {
    rules: ['LNK43'],
    needs: ['agent'],
    async run(ctx) {
      const { turn, own, device, other, picker_id, finish } = await asking(ctx, 'choice');
      turn.say('picker.closed', { picker_id: own, reason: 'withdrawn' });
      for (const one of [device, other]) like('LNK43', await one.next('picker.closed'), { payload: { picker_id } });
      refused('LNK43', await device.request('picker.select', { picker_id, value: 'yes' }), 'not_found');
      await finish();
      return 'withdrawn by the agent, it is closed on every device';
    },
  },
  {
    rules: ['PIC14'],
    async run(ctx) {
      const device = await ctx.join('phone');
      refused('PIC14', await device.request('picker.select', { picker_id: 'pk_none', value: 'x' }), 'not_found');
      return 'error not_found';
    },
  },
  {
    rules: ['NOT3'],
    needs: ['agent'],
    async run(ctx) {
      for (const kind of ['approval', 'clarify']) {
        const { device, finish } = await asking(ctx, kind);
        must(
          'NOT3',
          device.frames('notification').some(({ payload }) => payload.kind === kind) ||
            (await device.next('notification')).payload.kind === kind,
          `no notification of kind ${kind}`,
        );
        await finish();
      }
      return 'approval and clarify each come with a notification';
    },
  },
  {
    rules: ['LNK30'],
    needs: ['agent'],
    async run(ctx) {
      const { actor, device, picker_id, finish } = await asking(ctx, 'clarify');
      actor.agent.received.skip();
      const text = ctx.text('what I mean');
      like('LNK30', await device.send(text, ctx.lane), { type: 'message' });
      like('LNK30', await actor.agent.next('picker.select'), { payload: { value: text } });
      await device.next((frame) => frame.type === 'picker.closed' && frame.payload.picker_id === picker_id);
      await finish();
      return 'the next plain message is its answer';
    },
  },
];
