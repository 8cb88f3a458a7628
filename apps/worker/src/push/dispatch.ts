import type { Outbox } from '@iris/outbox';
import type { TenantId } from '@iris/protocol';
import type { Clock, Log, Meter, Random } from '@iris/runtime';
import {
  type Claimed,
  type LedgerKey,
  type PushFrameRow,
  type PushKind,
  type PushLedgerRow,
  type PushOutcome,
  type PushTargetRow,
  type Store,
  tokenHash,
} from '@iris/store';
import type { Sender, Verdict } from '../senders/sender.js';
import { batched } from './batch.js';
import type { PushConfig } from './config.js';
import { type Decision, decide } from './decide.js';
import { type Gate, gate, gates } from './gate.js';
import { loadView, type View } from './view.js';
import { noticeOf } from './words.js';

export interface PushDeps {
  readonly store: Store;
  readonly outbox: Outbox;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly meter: Meter;
  readonly senders: ReadonlyMap<PushKind, Sender>;
}

/** A push that was decided and is not sent yet. */
export interface Pending {
  readonly row: PushLedgerRow;
  readonly frame: PushFrameRow;
}

/** Sends what was decided, each target by itself. */
export interface Dispatch {
  /** They are claimed, sent and recorded in their own time; those that are here already are not taken twice. */
  offer(view: View, pending: readonly Pending[]): void;
  /** Asks a sender in its server's line. */
  through(target: PushTargetRow, ask: (sender: Sender) => Promise<Verdict>): Promise<Verdict>;
  /** What is here and not done yet. */
  readonly size: number;
  /** Nothing new is sent; resolves when what is under way has been recorded. */
  stop(): Promise<void>;
}

/** A view older than this is looked at again before something is sent by it. */
const fresh_ms = 1_000;
const backoffMax_ms = 5 * 60_000;
const most = 500;

export function createDispatch(deps: PushDeps, config: PushConfig): Dispatch {
  const { store, clock, random, log, meter, senders } = deps;
  const sent = meter.counter('iris_push_sent_total');
  const lag = meter.histogram('iris_push_lag_seconds');
  const here = new Map<string, Promise<void>>();
  let stopping = false;
  const per_second: Readonly<Record<PushKind, number>> = {
    fcm: config.push_fcm_per_second,
    webpush: config.push_webpush_per_second,
    ntfy: config.push_ntfy_per_second,
  };
  const lineOf = gates((name) => gate({ clock, at_once: config.push_at_once, per_second: per_second[name.split(' ')[0] as PushKind] }));
  const line = (sender: Sender, target: PushTargetRow): Gate => lineOf(`${sender.kind} ${sender.server(target)}`);

  const claim = batched(async (keys: readonly LedgerKey[]) => {
    const now = clock.now();
    const won = new Map((await store.pushLedger.claim(keys, now, now + config.push_claim_ms)).map((one) => [nameOf(one), one]));
    return keys.map((key) => won.get(nameOf(key)));
  }, most);
  const record = batched(async (outcomes: readonly PushOutcome[]) => {
    await store.pushLedger.record(outcomes);
    return outcomes.map(() => undefined);
  }, most);
  const views = refresher(deps, config);

  const outcomeOf = (row: PushLedgerRow, more: Pick<PushOutcome, 'state' | 'why' | 'due_at'> & Partial<PushOutcome>): PushOutcome => ({
    tenant_id: row.tenant_id,
    device_id: row.device_id,
    cursor: row.cursor,
    provider: row.provider,
    answer: row.answer,
    attempted: false,
    at: clock.now(),
    ...more,
  });
  const backoff = (attempts: number) =>
    Math.min(backoffMax_ms, config.push_backoff_ms * 2 ** Math.min(attempts, 20)) * (0.75 + random.unit() / 2);

  /** What the provider said, as the ledger has it. */
  const outcome = async ({ row, frame }: Pending, target: PushTargetRow, verdict: Verdict): Promise<PushOutcome> => {
    const now = clock.now();
    const said = { provider: target.kind, answer: verdict.answer, attempted: true };
    sent.add(1, { provider: target.kind, outcome: verdict.is });
    switch (verdict.is) {
      case 'accepted':
        lag.record((now - frame.at) / 1_000, { provider: target.kind });
        return outcomeOf(row, { ...said, state: 'sent', why: null, due_at: 0 });
      case 'dead':
        await store.pushTargets.drop(target);
        // Another way to the same device, if there is one, is found when it is decided again.
        return outcomeOf(row, { ...said, state: 'pending', why: `${target.kind} is dead`, due_at: now });
      case 'refused':
        return outcomeOf(row, { ...said, state: 'failed', why: 'refused', due_at: 0 });
      case 'retry': {
        const due_at = Math.ceil(now + Math.max(verdict.after_ms ?? 0, backoff(row.attempts)));
        if (row.attempts + 1 >= config.push_attempts)
          return outcomeOf(row, { ...said, state: 'failed', why: 'tried often enough', due_at: 0 });
        if (due_at > frame.at + config.push_age_ms)
          return outcomeOf(row, { ...said, state: 'failed', why: 'too old to be tried again', due_at: 0 });
        return outcomeOf(row, { ...said, state: 'pending', why: 'to be tried again', due_at });
      }
    }
  };

  const ask = async (view: View, { row, frame }: Pending, target: PushTargetRow, { lanes_before }: Claimed): Promise<Verdict> => {
    const url = config.push_answer_url;
    const answering = url === undefined ? undefined : { url, secret: () => Buffer.from(random.bytes(24)).toString('base64url') };
    const options = { cursor: row.covers, now: clock.now(), age_ms: config.push_age_ms, answering, lanes_before };
    const { notice, action } = noticeOf(view, frame, options);
    if (action !== undefined) {
      const { token, picker } = action;
      const expires_at = picker.expires_at ?? clock.now() + config.push_age_ms;
      const { tenant_id, picker_id } = picker;
      await store.pushActions.add([{ tenant_id, hash: tokenHash(token), picker_id, device_id: row.device_id, expires_at }]);
    }
    return senders.get(target.kind)!.send(target, notice, view.content);
  };

  /** Decided once more when it had to wait: the device may have come, or the message gone. */
  const again = async (view: View, { row, frame }: Pending): Promise<{ view: View; decision: Decision; frame: PushFrameRow }> => {
    const seen = clock.now() - view.at > fresh_ms ? await views(row.tenant_id, frame) : view;
    const now = clock.now();
    const device = seen.devices.get(row.device_id);
    const current = seen.frames.get(row.cursor);
    if (device === undefined) return { view: seen, decision: { is: 'skip', why: 'revoked' }, frame };
    if (current === undefined) return { view: seen, decision: { is: 'skip', why: 'deleted' }, frame };
    if (device.last_seen_at > row.decided_at) return { view: seen, decision: { is: 'skip', why: 'hello' }, frame };
    const patience = { live_ms: config.push_live_ms, age_ms: config.push_age_ms };
    return { view: seen, decision: decide(seen, current, device, now, patience), frame: current };
  };

  const run = async (first: View, pending: Pending): Promise<void> => {
    const { row } = pending;
    const target = first.targets.get(row.device_id)?.[0];
    const sender = target === undefined ? undefined : senders.get(target.kind);
    const leave = target !== undefined && sender !== undefined ? await line(sender, target).enter(row.tenant_id) : () => {};
    try {
      if (stopping) return;
      const { view, decision, frame } = await again(first, pending);
      if (decision.is === 'skip') {
        await record(outcomeOf(row, { state: 'skipped', why: decision.why, due_at: 0 }));
        await store.pushLedger.release(row, clock.now());
        return;
      }
      if (decision.is === 'wait')
        return void (await record(outcomeOf(row, { state: 'pending', why: 'connected', due_at: decision.until })));
      const claimed = senders.has(decision.target.kind) ? await claim(row) : undefined;
      if (claimed === undefined) return;
      const verdict = await ask(view, { row, frame }, decision.target, claimed);
      // The provider is free for the next while this one is written down.
      leave();
      await record(await outcome({ row, frame }, decision.target, verdict));
    } finally {
      leave();
    }
  };

  return {
    offer(view, pending) {
      for (const one of pending) {
        const name = nameOf(one.row);
        if (stopping || here.has(name)) continue;
        const done = run(view, one)
          // Left as it is: the sweep finds it.
          .catch((error: unknown) => log.warn('worker.push_left', { tenant_id: one.row.tenant_id, error }))
          .then(() => void here.delete(name));
        here.set(name, done);
      }
    },
    async through(target, how) {
      const sender = senders.get(target.kind);
      if (sender === undefined) return { is: 'refused', answer: 'no such provider' };
      const leave = await line(sender, target).enter(target.tenant_id);
      try {
        return await how(sender);
      } finally {
        leave();
      }
    },
    get size() {
      return here.size;
    },
    async stop() {
      stopping = true;
      await Promise.all(here.values());
    },
  };
}

const nameOf = ({ tenant_id, device_id, cursor }: LedgerKey): string => `${tenant_id}\n${device_id}\n${cursor}`;

/**
 * Those that look again within the time in which a look is good share one, begun or done: with many pushes of a tenant in line each would
 * otherwise ask everything anew, and what asks so much takes the connections from the claims.
 */
function refresher(deps: PushDeps, config: PushConfig): (tenant_id: TenantId, frame: PushFrameRow) => Promise<View> {
  interface Look {
    readonly at: number;
    readonly cursors: Set<number>;
    begun: boolean;
    view: Promise<View>;
  }
  const looks = new Map<TenantId, Look>();
  const look = (tenant_id: TenantId): Look => {
    const one: Look = { at: deps.clock.now(), cursors: new Set(), begun: false, view: undefined as never };
    one.view = new Promise<void>((resolve) => deps.clock.soon(resolve)).then(async () => {
      one.begun = true;
      // The neighbours tell whether a notification stands beside its picker.
      const wanted = [...new Set([...one.cursors].flatMap((cursor) => [cursor - 1, cursor]))];
      const frames = await deps.store.pushFrames.get(tenant_id, wanted);
      return loadView(deps, tenant_id, frames, config.push_providers);
    });
    const forget = () => looks.get(tenant_id) === one && looks.delete(tenant_id);
    one.view.catch(forget);
    deps.clock.after(fresh_ms, forget);
    looks.set(tenant_id, one);
    return one;
  };
  return (tenant_id, frame) => {
    const known = looks.get(tenant_id);
    const good = known !== undefined && deps.clock.now() - known.at < fresh_ms && (!known.begun || known.cursors.has(frame.cursor));
    const one = good ? known : look(tenant_id);
    one.cursors.add(frame.cursor);
    return one.view;
  };
}
