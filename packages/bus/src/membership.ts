import type { SessionId } from '@iris/protocol';
import type { Clock, Timer } from '@iris/runtime';
import type { Bus, Subscription } from './bus.js';
import { type Announcement, announceDead_ms, announceEvery_ms } from './hop.js';
import { subjects } from './subjects.js';

const utf8 = new TextEncoder();
const text = new TextDecoder();

/**
 * Say that this session instance serves: now, every {@link announceEvery_ms}, when the broker is reached again, and when an edge asks.
 * Begin only once its subject is served and {@link Bus.flush} has returned: the first announcement brings requests at once.
 */
export function announceSession({ bus, clock, session_id }: { bus: Bus; clock: Clock; session_id: SessionId }): Announcer {
  let ended = false;
  const say = (state: Announcement['state']) => {
    if (!ended) bus.publish(subjects.announce, utf8.encode(JSON.stringify({ session_id, state } satisfies Announcement)));
  };
  const asked = bus.subscribe(subjects.announceAsk, () => say('serving'));
  const stopHearing = bus.onConnected((connected) => connected && say('serving'));
  const timer = clock.every(announceEvery_ms, () => say('serving'));
  say('serving');
  return {
    leave() {
      if (ended) return;
      say('leaving');
      ended = true;
      asked.end();
      stopHearing();
      timer.cancel();
    },
  };
}

export interface Announcer {
  /** Withdraw: new requests go elsewhere. Does nothing the second time. */
  leave(): void;
}

/** The session instances an edge may ask. */
export interface SessionWatch {
  readonly live: ReadonlySet<SessionId>;
  /** Called after each change of {@link live}; returns a function that ends it. */
  onChange(listener: (live: ReadonlySet<SessionId>) => void): () => void;
  /** Nobody serves its subject ({@link NoResponders}): it is out at once, until it announces itself again. */
  suspect(session_id: SessionId): void;
  end(): void;
}

/** How long a goodbye is remembered, so that an announcement that was overtaken by it does not bring the instance back. */
const goodbyeKept_ms = 60_000;

/**
 * Keep the set of live session instances from their announcements. An instance is out when it leaves, when it is {@link SessionWatch.suspect},
 * or when it has been silent for {@link announceDead_ms} while the broker could be heard: silence of a broken line says
 * nothing about those at its other end, so after a break each gets its full time again.
 */
export function watchSessions({ bus, clock }: { bus: Bus; clock: Clock }): SessionWatch {
  const live = new Set<SessionId>();
  const deaths = new Map<SessionId, Timer>();
  const goodbyes = new Map<SessionId, Timer>();
  const listeners = new Set<(live: ReadonlySet<SessionId>) => void>();

  const changed = () => {
    for (const listener of [...listeners]) listener(live);
  };
  const remove = (session_id: SessionId) => {
    deaths.get(session_id)?.cancel();
    deaths.delete(session_id);
    if (live.delete(session_id)) changed();
  };
  const heard = (session_id: SessionId) => {
    deaths.get(session_id)?.cancel();
    deaths.set(
      session_id,
      clock.after(announceDead_ms, () => {
        if (bus.connected) remove(session_id);
      }),
    );
  };
  const ask = () => bus.publish(subjects.announceAsk, new Uint8Array());

  const announcements: Subscription = bus.subscribe(subjects.announce, (data) => {
    const { session_id, state } = JSON.parse(text.decode(data)) as Announcement;
    if (state === 'leaving') {
      goodbyes.get(session_id)?.cancel();
      goodbyes.set(
        session_id,
        clock.after(goodbyeKept_ms, () => void goodbyes.delete(session_id)),
      );
      remove(session_id);
    } else if (!goodbyes.has(session_id)) {
      heard(session_id);
      if (!live.has(session_id)) {
        live.add(session_id);
        changed();
      }
    }
  });
  const stopHearing = bus.onConnected((connected) => {
    if (!connected) return;
    for (const session_id of live) heard(session_id);
    ask();
  });
  ask();

  return {
    live,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    suspect: remove,
    end() {
      announcements.end();
      stopHearing();
      for (const timer of [...deaths.values(), ...goodbyes.values()]) timer.cancel();
      deaths.clear();
      goodbyes.clear();
      listeners.clear();
    },
  };
}
