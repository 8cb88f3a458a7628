import { type AgentCheck, Skipped } from './subject.js';

const must = (holds: unknown, why: string): void => {
  if (!holds) throw new Error(why);
};
let deletions = 0;

/** In this order: the last ones end the agent. */
export const agentChecks: readonly AgentCheck[] = [
  {
    rules: ['LNK1', 'LNK12', 'LNK13'],
    title: 'hello says who it is and what it has',
    async run({ gateway }, say) {
      await say.linked();
      const { agent, install_id, boot_id, last_seq, caps } = gateway.hellos[0]!;
      must(last_seq === 0, `last_seq ${last_seq} of a gateway that it never saw`);
      must(install_id !== boot_id, 'install_id and boot_id are the same: one is stable, one is new with each process');
      return `${agent}, caps ${Object.keys(caps ?? {}).join(' ') || 'none'}`;
    },
  },
  {
    rules: ['LNK18', 'LNK19', 'LNK20'],
    title: 'a turn is accepted, answered and ended, once',
    async run({ gateway, ask }, say) {
      const turn_id = await say.begun(ask);
      const outcome = await say.ended(turn_id);
      await say.caughtUp();
      must(outcome === 'completed', `it ended as ${outcome}: ${gateway.turns.get(turn_id)?.error ?? ''}`);
      const said = gateway.processed.filter(
        (frame) => frame.turn_id === turn_id && (frame.type === 'message.stop' || frame.type === 'message'),
      );
      must(said.length > 0, 'nothing was said');
      return `${said.length} message(s)`;
    },
  },
  {
    rules: ['LNK10'],
    title: 'ping is answered',
    async run(_, say) {
      await say.caughtUp();
      return 'pong';
    },
  },
  {
    rules: ['LNK11'],
    title: 'a durable frame of an unknown type is passed over, and acked',
    async run({ gateway }, say) {
      await say.linked();
      gateway.tell({ type: 'something.new' as never, payload: { of: 'another version' } });
      await say.until(() => gateway.unacked === 0, 'it is not acked');
      return 'acked';
    },
  },
  {
    rules: ['LNK8', 'LNK18'],
    title: 'turns of two lanes run side by side',
    async run({ ask_long }, say) {
      const turns = await Promise.all([say.begun(ask_long), say.begun(ask_long, { thread_id: 't_conformance' })]);
      const outcomes = await Promise.all(turns.map((turn_id) => say.ended(turn_id, 120_000)));
      return outcomes.join(' and ');
    },
  },
  {
    rules: ['LNK5', 'LNK7', 'LNK15', 'LNK31', 'LNK35'],
    title: 'the line is cut in mid-turn: the same process comes back, says what is unacked, then how the turn stands, and goes on',
    async run({ gateway, ask_long }, say) {
      const turn_id = await say.begun(ask_long);
      const before = gateway.hellos.length;
      const { install_id, boot_id } = gateway.hellos.at(-1)!;
      gateway.net.cut();
      await say.until(() => gateway.hellos.length > before && gateway.linked, 'it does not come back');
      const hello = gateway.hellos.at(-1)!;
      must(hello.install_id === install_id && hello.boot_id === boot_id, 'it came back as another process');
      const outcome = await say.ended(turn_id, 120_000);
      const snapshot = gateway.processed.some((frame) => frame.type === 'turn.snapshot' && frame.turn_id === turn_id);
      must(!(hello.open_turns ?? []).includes(turn_id) || snapshot, 'no turn.snapshot');
      return `${outcome}, ${snapshot ? 'with a snapshot' : 'it had ended meanwhile'}`;
    },
  },
  {
    rules: ['LNK7', 'LNK26'],
    title: 'what the gateway says again is done once',
    async run({ gateway, ask }, say) {
      const turn_id = await say.begun(ask);
      // Before its ack can be here: the same frame comes again by the next link.
      gateway.net.cut();
      await say.ended(turn_id);
      await say.caughtUp();
      const accepted = gateway.processed.filter((frame) => frame.type === 'turn.accepted' && frame.turn_id === turn_id).length;
      must(accepted === 1, `accepted ${accepted} times`);
      return 'accepted once';
    },
  },
  {
    rules: ['LNK21'],
    title: 'agent.stop ends the turn within 10 s, and nothing of it is said behind that',
    async run({ gateway, ask_long }, say) {
      const turn_id = await say.begun(ask_long);
      const at = Date.now();
      gateway.stop(turn_id);
      const outcome = await say.ended(turn_id, 10_000);
      must(outcome === 'cancelled', `it ended as ${outcome}: was it stopped, or done?`);
      await say.caughtUp();
      return `cancelled after ${Date.now() - at} ms`;
    },
  },
  {
    rules: ['LNK21'],
    title: 'a stop that comes with the turn ends it as well',
    async run({ gateway, ask_long }, say) {
      await say.linked();
      const turn_id = gateway.startTurn(ask_long);
      gateway.stop(turn_id);
      const outcome = await say.ended(turn_id, 10_000);
      must(outcome === 'cancelled', `it ended as ${outcome}`);
      return outcome;
    },
  },
  {
    rules: ['LNK22'],
    title: 'agent.steer is answered',
    async run({ gateway, ask_long }, say) {
      const turn_id = await say.begun(ask_long);
      const seq = gateway.steer(turn_id, 'and hurry');
      const accepted = await say.until(
        () => (gateway.steered(seq) === undefined ? undefined : { value: gateway.steered(seq) }),
        'no answer',
      );
      gateway.stop(turn_id);
      await say.ended(turn_id, 10_000);
      return accepted.value ? 'accepted' : 'not taken: it becomes the next turn';
    },
  },
  {
    rules: ['LNK22'],
    title: 'a steer for a turn that has ended is not accepted',
    async run({ gateway, ask }, say) {
      const turn_id = await say.begun(ask);
      await say.ended(turn_id);
      const seq = gateway.steer(turn_id, 'too late');
      await say.until(() => gateway.steered(seq) !== undefined, 'no answer');
      must(gateway.steered(seq) === false, 'it says it took it');
      return 'not accepted';
    },
  },
  {
    rules: ['LNK41'],
    title: 'message.deleted is answered',
    async run({ gateway }, say) {
      await say.linked();
      const id = `del${++deletions}`;
      gateway.tell({ type: 'message.deleted', id, chat_id: 'android:default', payload: { message_ids: ['m_gone'] } });
      await say.until(() => gateway.passing.some((frame) => frame.type === 'ack' && frame.id === id), 'no ack with its id');
      return 'acked with its id';
    },
  },
  {
    rules: ['LNK38'],
    title: 'commands.catalog is answered with the commands',
    async run({ gateway }, say) {
      await say.linked();
      const before = gateway.processed.length;
      gateway.say({ type: 'commands.catalog', payload: {} });
      const frame = await say.until(
        () => gateway.processed.slice(before).find(({ type }) => type === 'commands.catalog'),
        'no answer; an agent without commands says an empty list',
      );
      return `${(frame.payload as { commands: unknown[] }).commands.length} commands`;
    },
  },
  {
    rules: ['LNK4', 'CLS1'],
    title: '1012: it comes back at once',
    async run({ gateway }, say) {
      await say.linked();
      const before = gateway.hellos.length;
      const at = Date.now();
      gateway.close(1012);
      await say.until(() => gateway.hellos.length > before && gateway.linked, 'it does not come back');
      return `after ${Date.now() - at} ms`;
    },
  },
  {
    rules: ['LNK37'],
    title: 'drain: a second link, and then no first',
    async run({ gateway }, say) {
      await say.linked();
      const before = gateway.hellos.length;
      gateway.say({ type: 'drain', payload: { deadline_ms: 5_000 } });
      await say.until(() => gateway.hellos.length > before && gateway.linked, 'no second link');
      return 'linked anew';
    },
  },
  {
    rules: ['LNK33', 'LNK34'],
    title: 'kill -9 in mid-turn: the next process says that the turn is over, or nothing, and never begins it again',
    async run({ gateway, ask_long, restart }, say) {
      if (restart === undefined) throw new Skipped('the agent cannot be killed from here (--run does)');
      const turn_id = await say.begun(ask_long);
      const before = gateway.hellos.length;
      const old = gateway.hellos.at(-1)!;
      await restart();
      await say.until(() => gateway.hellos.length > before && gateway.linked, 'the next process does not come');
      const hello = gateway.hellos.at(-1)!;
      must(hello.boot_id !== old.boot_id, 'the same boot_id');
      // Named, it is one of which it has something to say: the end that the old process could not, or what it goes on with.
      const named = (hello.open_turns ?? []).includes(turn_id);
      await say.caughtUp();
      if (hello.install_id !== old.install_id && !named) return 'a new installation (no spool): the gateway ends the turn';
      const outcome = await say.ended(turn_id).catch(() => undefined);
      must(!named || outcome !== undefined, 'it says that it goes on with a turn whose process is gone, and never ends it');
      must(outcome === undefined || outcome === 'interrupted' || (named && outcome === 'completed'), `it ended as ${outcome}`);
      const accepted = gateway.processed.filter((frame) => frame.type === 'turn.accepted' && frame.turn_id === turn_id).length;
      must(accepted === 1, `accepted ${accepted} times`);
      return outcome ?? 'nothing said: the gateway ends the turn';
    },
  },
  {
    rules: ['LNK16', 'CLS5'],
    title: '4409: another process took over, and it stays away',
    async run({ gateway }, say) {
      await say.linked();
      const before = gateway.net.dials;
      gateway.close(4409);
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      must(gateway.net.dials === before, `it dialled ${gateway.net.dials - before} times more`);
      return 'no further dial';
    },
  },
];
