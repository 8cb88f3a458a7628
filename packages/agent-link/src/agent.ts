import type { Agent, AgentOptions } from './agent-options.js';
import { openQuestions } from './ask.js';
import { channelDirectory } from './channels.js';
import { systemClock } from './clock.js';
import { catalogOf } from './commands.js';
import { fileSpool } from './file-spool.js';
import type { Down, DownOf } from './frame.js';
import { idMaker, randomId, systemRandom } from './ids.js';
import { created, createLane, type LaneContext, unexpected } from './lane.js';
import { type LinkEnd, link } from './link.js';
import { silentLog } from './log.js';
import { requests } from './requests.js';
import { memorySpool } from './spool.js';
import { steers } from './steers.js';
import { runningTurns } from './turns.js';
import type { Caps } from './types.js';
import { wsConnect } from './ws-connect.js';

/**
 * Attach an agent to the gateway and keep it attached until it is stopped or refused.
 * @throws TypeError when `gateway` is no `ws://` or `wss://` URL; SpoolInUse when another live process has the spool
 */
export function runAgent(options: AgentOptions): Agent {
  const { clock = systemClock, random = systemRandom, log = silentLog } = options;
  const url = new URL(options.gateway);
  if (url.protocol !== 'ws:' && url.protocol !== 'wss:')
    throw new TypeError(`${options.gateway} is no WebSocket address (ws:// or wss://)`);
  const spool =
    typeof options.spool === 'string'
      ? fileSpool(options.spool, { clock, random, log })
      : (options.spool ?? memorySpool(`in_${randomId(random, 20)}`));
  const newId = idMaker(random);
  const questions = openQuestions();
  const directory = channelDirectory();
  let catalog = catalogOf(options.commands ?? []);
  /** `closing`: no new turn is begun; the gateway gives it to the next process. */
  let phase: 'running' | 'closing' | 'over' = 'running';
  let resolveStopped: (end: LinkEnd) => void;
  const stopped = new Promise<LinkEnd>((resolve) => {
    resolveStopped = resolve;
  });

  const connection = link({
    url: url.href,
    token: options.token,
    connect: options.connect ?? wsConnect,
    clock,
    random,
    log,
    spool,
    hello: {
      agent: options.name,
      ...(options.version === undefined ? {} : { version: options.version }),
      boot_id: `boot_${randomId(random, 20)}`,
      caps: { ...caps(options), ...options.caps },
    },
    events: {
      frame,
      again(frame) {
        if (frame.type === 'agent.steer') steering.again(frame);
      },
      online(ack) {
        directory.replace(ack.channels);
        log.info('agent_link.online', { link_id: ack.link_id, epoch: ack.epoch, unacked: spool.state.unacked.length });
        options.onStatus?.({ state: 'online' });
      },
      resumed() {
        turns.snapshot();
        steering.resumed();
        asked.resumed();
      },
      startedOver() {
        turns.abandonAll();
        sendCatalog();
      },
      offline: (code, reason) => options.onStatus?.({ state: 'offline', code, reason }),
      ended: (end) => void finish(end),
    },
  });
  const { journal } = connection;
  const steering = steers(journal);
  const asked = requests({ journal, clock, newId });
  const context: LaneContext = {
    clock,
    journal,
    link: connection,
    requests: asked,
    questions,
    putBytes: options.putBytes ?? ((where, bytes, mime) => httpPut(new URL(where, url.href.replace(/^ws/, 'http')), bytes, mime)),
    newId,
    defaultChat: () => directory.defaultChat(),
  };
  const turns = runningTurns({ context, log, catalog: () => catalog, onTurn: options.onTurn });

  const sendCatalog = () => {
    journal.keep({ type: 'commands.catalog', payload: { commands: [...catalog.entries], rev: catalog.rev } });
  };

  function frame(frame: Down): void | Promise<void> {
    const answer = asked.answered(frame);
    switch (frame.type) {
      case 'turn.start':
        // Not acked while closing, so it is there for the process that comes after this one.
        if (phase !== 'running') return new Promise(() => {});
        turns.begin(frame);
        return;
      case 'agent.stop':
        turns.stop(frame.turn_id ?? '');
        return;
      case 'agent.steer':
        steering.answer(frame, turns.steer(frame));
        return;
      case 'picker.select':
      case 'picker.closed':
        questions.told(frame);
        return;
      case 'message.deleted':
        return deleted(frame);
      case 'channel.created':
      case 'channel.renamed':
        directory.put(frame.payload);
        return;
      case 'channel.deleted':
        directory.remove(frame.payload);
        turns.stopLane(frame.payload.chat_id, frame.payload.thread_id);
        return;
      case 'commands.catalog':
        sendCatalog();
        return;
      case 'error':
        if (!answer) log.warn('agent_link.error', { code: frame.payload.code, message: frame.payload.message });
    }
  }

  async function deleted(frame: DownOf<'message.deleted'>): Promise<void> {
    const { message_ids, own_ids = {} } = frame.payload;
    const answer = await options.onDeleted?.({
      chat_id: frame.chat_id,
      thread_id: frame.thread_id ?? null,
      message_ids,
      own_ids: new Map(Object.entries(own_ids)),
    });
    journal.say({
      type: 'ack',
      ...(frame.id === undefined ? {} : { id: String(frame.id) }),
      payload: { removed: [...(answer?.removed ?? [])], missing: [...(answer?.missing ?? (answer?.removed ? [] : message_ids))] },
    });
  }

  async function stop({ finish_ms = 0, flush_ms = 3_000 }: { finish_ms?: number; flush_ms?: number } = {}): Promise<LinkEnd> {
    if (phase !== 'running') return stopped;
    phase = 'closing';
    if (finish_ms > 0) await within(finish_ms, turns.allEnded());
    turns.stopAll();
    await turns.allEnded();
    await within(flush_ms, connection.online ? journal.flushed() : journal.idle());
    connection.close();
    return stopped;
  }

  const within = (ms: number, what: Promise<unknown>): Promise<void> =>
    new Promise((resolve) => {
      const timer = clock.after(ms, resolve);
      void what.then(() => {
        timer.cancel();
        resolve();
      });
    });

  async function finish(end: LinkEnd): Promise<void> {
    if (phase === 'over') return;
    phase = 'over';
    turns.stopAll();
    asked.close();
    if (end.reason !== 'stopped') log.error('agent_link.ended', { ...end });
    await within(3_000, journal.idle());
    journal.close();
    await spool.close();
    options.onStatus?.({ state: 'ended', end });
    resolveStopped(end);
  }

  // Turns of an earlier process can't go on: their functions are gone. The gateway hears it before anything else.
  for (const [turn_id, { chat_id, thread_id, end_seq }] of spool.state.turns) {
    if (end_seq !== undefined) continue;
    journal.keep({ type: 'turn.end', turn_id, chat_id, thread_id, payload: { outcome: 'interrupted', error: 'the agent was restarted' } });
  }
  sendCatalog();
  connection.start();

  return {
    get online() {
      return connection.online;
    },
    get unacked() {
      return spool.state.unacked.length;
    },
    channels: () => directory.list(),
    lane: (chat_id, thread_id = null) => createLane(context, { chat_id, thread_id }).lane,
    createChannel: async (name) =>
      created(await asked.ask({ type: 'channel.create', payload: { name, kind: 'channel' } }, { durable: true })),
    async search(query, lane) {
      const answer = await asked.ask(
        { type: 'search', ...(lane ?? {}), payload: { query, scope: lane ? 'chat' : 'all' } },
        { durable: false },
      );
      if (answer.type !== 'search.results') throw unexpected('search', answer.type);
      return answer.payload;
    },
    setCommands(commands) {
      catalog = catalogOf(commands);
      sendCatalog();
    },
    stop,
    stopped,
  };
}

const caps = (options: AgentOptions): Caps => ({
  stream: true,
  reasoning: true,
  tools: true,
  pickers: ['model', 'choice', 'clarify', 'approval', 'confirm'],
  steer: true,
  stop: true,
  delete: options.onDeleted !== undefined,
  titles: true,
  cron: true,
  media: true,
  resume: true,
});

async function httpPut(url: URL, bytes: Uint8Array, mime: string): Promise<void> {
  const response = await fetch(url, { method: 'PUT', body: bytes as Uint8Array<ArrayBuffer>, headers: { 'content-type': mime } });
  if (!response.ok) throw new Error(`storing media: HTTP ${response.status}`);
}
