import { onStage, type Stage, type StageOptions } from '@iris/testkit';

/** Where notifications answer, in a world. */
export const answer_url = 'https://edge.test/push/answer';

/** A stage on which pushes are on. */
export const onPushStage = (play: (stage: Stage) => Promise<void>, more: StageOptions = {}): Promise<void> =>
  onStage(play, { push: true, ...more, worker_config: { push_answer_url: answer_url, ...more.worker_config } });

/** The tablet is away, and can be pushed there; the phone stays. */
export async function away({ b, world }: Pick<Stage, 'b' | 'world'>, where: Record<string, unknown> = { fcm_token: 'token-b' }) {
  await b.request('fcm.register', where);
  b.cut();
  // One that has just said hello may be connected still.
  await world.advance(2_500);
}

/** A whole turn of the phone's. */
export async function turn({ a, agent }: Pick<Stage, 'a' | 'agent'>, text: string, answer: string, lane: { chat_id?: string } = {}) {
  await a.send(text, lane);
  const running = await agent.turn();
  running.message(answer);
  running.end();
  await a.next('agent.idle');
}

/** What was decided about a device, newest first. */
export const ledgerOf = ({ world, tenant }: Pick<Stage, 'world' | 'tenant'>, device: string) =>
  world.store.pushLedger.explain(tenant.tenant_id, device as never, { limit: 100 });

export const finalsOf = ({ tenant }: Pick<Stage, 'tenant'>) => tenant.log.filter(({ frame }) => frame.payload.role === 'assistant');
