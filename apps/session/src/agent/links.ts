import type { AgentId, ConnectionId, EdgeId, TenantId } from '@iris/protocol';
import { closeCodes } from '@iris/protocol';
import type { Clock, Log } from '@iris/runtime';
import type { AgentFrameRow, AgentRow, Store } from '@iris/store';
import type { Directory } from '../directory.js';
import type { Outgoing } from '../outgoing.js';
import { type AgentLink, linkDead_ms, linkOf, linkText } from './link.js';

interface Entry {
  link: AgentLink;
  /** Another instance changed the agents since. */
  stale: boolean;
  /** Frames wait for a look into the store. */
  resync: boolean;
  resyncing: boolean;
  /** When frames that are not acked are sent again, and how long that takes to double. */
  resendAt: number;
  resend_ms: number;
  storing: Promise<void> | undefined;
  acking: boolean;
  /** How often the last ack is said again: it may have been lost, and then nothing else would say it. */
  repeats: number;
}

const firstResend_ms = 2_000;
const lastResend_ms = 15_000;
const repeatsOfAck = 2;
const utf8 = new TextEncoder();

/**
 * The agents' links: what goes to them, in order and until it is acked; and what of theirs is processed, said to them once it is stored.
 */
export interface Links {
  /** The agent's link, looked up when it is not known here; undefined when there is no such agent. */
  of(tenant_id: TenantId, agent_id: AgentId): Promise<AgentLink | undefined>;
  /** The same, as the store has it now: what is decided for a turn's life must not rest on what an instance remembers from before it stood still. */
  current(tenant_id: TenantId, agent_id: AgentId): Promise<AgentLink | undefined>;
  /** Whether `epoch` is the agent's newest; an older link is closed. */
  admit(record: {
    tenant_id: TenantId;
    agent_id: AgentId;
    epoch: number;
    edge_id: EdgeId;
    connection_id: ConnectionId;
  }): Promise<AgentLink | undefined>;
  attached(link: AgentLink | undefined): link is AgentLink & { readonly edge_id: EdgeId; readonly connection_id: ConnectionId };
  /** A hello was answered: this is the link now. */
  attach(row: AgentRow, sent_seq: number, acked_seq: number): AgentLink;
  held(record: { tenant_id: TenantId; agent_id: AgentId; epoch: number; edge_id: EdgeId; connection_id: ConnectionId }): Promise<void>;
  gone(record: { tenant_id: TenantId; agent_id: AgentId; epoch: number; connection_id: ConnectionId }): Promise<void>;
  send(tenant_id: TenantId, agent: readonly { readonly agent_id: AgentId; readonly rows: readonly AgentFrameRow[] }[]): void;
  /** The agent has ours up to `seq`. */
  acked(link: AgentLink, seq: number): void;
  /** The agent's frame `seq` has had its effect. */
  processed(link: AgentLink, seq: number): void;
  /** The agent has not heard that it is. */
  repeat(link: AgentLink): void;
  /** What is processed is stored. */
  settled(tenant_id: TenantId, agent_id: AgentId): Promise<void>;
  /** Ask every link of the tenant to come back. */
  recall(tenant_id: TenantId): Promise<void>;
  /** Another instance changed the tenant's agents. */
  stale(tenant_id: TenantId): void;
  /** Every second. */
  tick(): void;
}

export function createLinks(deps: { store: Store; directory: Directory; outgoing: Outgoing; clock: Clock; log: Log }): Links {
  const { store, directory, outgoing, clock, log } = deps;
  const entries = new Map<string, Entry>();
  let seen: { tenant_id: TenantId; agent_id: AgentId; epoch: number }[] = [];
  const keyOf = (tenant_id: TenantId, agent_id: AgentId) => `${tenant_id}\n${agent_id}`;

  const put = (link: AgentLink): Entry => {
    const entry: Entry = {
      link,
      stale: false,
      resync: false,
      resyncing: false,
      resendAt: 0,
      resend_ms: firstResend_ms,
      storing: undefined,
      acking: false,
      repeats: 0,
    };
    entries.set(keyOf(link.tenant_id, link.agent_id), entry);
    return entry;
  };
  const look = async (tenant_id: TenantId, agent_id: AgentId, anew = false): Promise<Entry | undefined> => {
    const known = entries.get(keyOf(tenant_id, agent_id));
    if (known !== undefined && !known.stale && !anew) return known;
    const row = await store.agents.get(tenant_id, agent_id);
    if (row === undefined) return undefined;
    const now = entries.get(keyOf(tenant_id, agent_id));
    if (
      now !== undefined &&
      (now.link.epoch > row.epoch || (now.link.epoch === row.epoch && now.link.connection_id === row.link_connection_id))
    ) {
      now.stale = false;
      now.link.seen_at = Math.max(now.link.seen_at, row.link_seen_at ?? 0);
      return now;
    }
    return put(linkOf(row, clock.now()));
  };
  const say = (link: AgentLink, frame: Record<string, unknown>, seq?: number) => {
    if (link.edge_id === null || link.connection_id === null) return;
    const body = utf8.encode(linkText(frame, seq));
    outgoing.to(link.edge_id, { kind: 'agent', connection_id: link.connection_id, ...(seq === undefined ? {} : { seq }), body });
  };
  const close = (edge_id: EdgeId, connection_id: ConnectionId, code: number, reason: string) =>
    outgoing.to(edge_id, { kind: 'close', connection_id, code, reason, body: new Uint8Array() });

  /** Everything that is not acked, in order: the edge passes on what it has not had. */
  const resync = async (entry: Entry): Promise<void> => {
    if (entry.resyncing) return;
    entry.resyncing = true;
    try {
      while (entry.resync) {
        entry.resync = false;
        const { link } = entry;
        const rows = await store.agentFrames.after(link.tenant_id, link.agent_id, link.acked_seq);
        if (entry.link !== link) continue;
        for (const { frame, seq } of rows) say(link, frame, seq);
        link.sent_seq = Math.max(link.sent_seq ?? 0, rows.at(-1)?.seq ?? link.acked_seq);
      }
    } catch (error) {
      entry.resync = true;
      entry.resendAt = clock.now();
      log.warn('session.agent_frames_not_read', { agent_id: entry.link.agent_id, error });
    } finally {
      entry.resyncing = false;
    }
  };
  /** One write for all that was processed meanwhile; the agent hears of it when it is stored. */
  const storeDone = async (entry: Entry): Promise<void> => {
    while (entry.link.done_seq > entry.link.stored_seq) {
      const { link } = entry;
      const seq = link.done_seq;
      try {
        await store.agents.processed(link.tenant_id, link.agent_id, link.install_id, seq);
      } catch (error) {
        log.warn('session.ack_not_stored', { agent_id: link.agent_id, error });
        return;
      }
      link.stored_seq = Math.max(link.stored_seq, seq);
      sayAck(entry);
      entry.repeats = repeatsOfAck;
    }
  };
  const sayAck = ({ link }: Entry) => say(link, { type: 'ack', ack: link.stored_seq });
  const settle = (entry: Entry): Promise<void> => {
    entry.storing ??= storeDone(entry).finally(() => {
      entry.storing = undefined;
    });
    return entry.storing;
  };
  const storeAck = async (entry: Entry): Promise<void> => {
    if (entry.acking) return;
    entry.acking = true;
    const { link } = entry;
    const seq = link.acked_seq;
    await store.agentFrames
      .ack(link.tenant_id, link.agent_id, seq)
      .catch((error: unknown) => log.warn('session.agent_ack_not_stored', { agent_id: link.agent_id, error }));
    entry.acking = false;
    if (entry.link === link && link.acked_seq > seq) void storeAck(entry);
  };
  const attached: Links['attached'] = (link): link is AgentLink & { edge_id: EdgeId; connection_id: ConnectionId } =>
    link !== undefined && link.connection_id !== null && link.edge_id !== null && link.seen_at > clock.now() - linkDead_ms;

  const links: Links = {
    async of(tenant_id, agent_id) {
      return (await look(tenant_id, agent_id))?.link;
    },
    async current(tenant_id, agent_id) {
      const entry = await look(tenant_id, agent_id, true);
      return entry?.link;
    },
    async admit({ tenant_id, agent_id, epoch, edge_id, connection_id }) {
      let entry = await look(tenant_id, agent_id);
      if (entry !== undefined && entry.link.epoch < epoch) {
        entry.stale = true;
        entry = await look(tenant_id, agent_id);
      }
      if (entry === undefined || entry.link.epoch > epoch) {
        close(edge_id, connection_id, closeCodes.replaced, 'a newer link of this agent took over');
        return undefined;
      }
      return entry.link;
    },
    attached,
    attach(row, sent_seq, acked_seq) {
      const link = { ...linkOf(row, clock.now()), sent_seq, acked_seq, seen_at: clock.now() };
      const entry = put(link);
      entry.resendAt = clock.now() + entry.resend_ms;
      return link;
    },
    async held(record) {
      const link = await links.admit(record);
      if (link === undefined) return;
      // The store took it for gone: only a new hello brings it back.
      if (link.connection_id !== record.connection_id)
        return close(record.edge_id, record.connection_id, closeCodes.restarting, 'come back');
      link.seen_at = clock.now();
      if (seen.length === 0)
        clock.soon(() => {
          const all = seen;
          seen = [];
          store.agents.seen(all, clock.now()).catch((error: unknown) => log.warn('session.links_not_marked', { count: all.length, error }));
        });
      seen.push({ tenant_id: link.tenant_id, agent_id: link.agent_id, epoch: link.epoch });
      const entry = entries.get(keyOf(link.tenant_id, link.agent_id));
      if (entry !== undefined && entry.repeats > 0) {
        entry.repeats--;
        sayAck(entry);
      }
    },
    async gone({ tenant_id, agent_id, epoch, connection_id }) {
      const entry = entries.get(keyOf(tenant_id, agent_id));
      if (entry !== undefined && entry.link.epoch === epoch && entry.link.connection_id === connection_id)
        entry.link = { ...entry.link, edge_id: null, connection_id: null };
      if (await store.agents.detach(tenant_id, agent_id, epoch, clock.now())) directory.changed(tenant_id, 'agents');
    },
    send(tenant_id, agent) {
      for (const { agent_id, rows } of agent) {
        const entry = entries.get(keyOf(tenant_id, agent_id));
        if (entry === undefined || entry.stale) {
          void look(tenant_id, agent_id)
            .then((found) => {
              if (found === undefined || !attached(found.link)) return;
              found.resync = true;
              return resync(found);
            })
            .catch((error: unknown) => log.warn('session.link_not_found', { agent_id, error }));
          continue;
        }
        const { link } = entry;
        for (const { frame, seq } of rows) {
          // Acked before: there is nothing to send.
          if (seq === 0 || (link.sent_seq !== undefined && seq <= link.sent_seq)) continue;
          if (entry.resyncing || link.sent_seq === undefined || seq !== link.sent_seq + 1) {
            entry.resync = true;
            break;
          }
          say(link, frame, seq);
          link.sent_seq = seq;
        }
        entry.resendAt = Math.max(entry.resendAt, clock.now() + entry.resend_ms);
        if (entry.resync) void resync(entry);
      }
    },
    acked(link, seq) {
      if (seq <= link.acked_seq) return;
      link.acked_seq = seq;
      const entry = entries.get(keyOf(link.tenant_id, link.agent_id));
      if (entry?.link !== link) return;
      entry.resend_ms = firstResend_ms;
      entry.resendAt = clock.now() + firstResend_ms;
      void storeAck(entry);
    },
    processed(link, seq) {
      link.done_seq = Math.max(link.done_seq, seq);
      const entry = entries.get(keyOf(link.tenant_id, link.agent_id));
      if (entry === undefined) return;
      // A frame that came over an older link counts for the newer one of the same installation.
      if (entry.link !== link && entry.link.install_id === link.install_id) entry.link.done_seq = Math.max(entry.link.done_seq, seq);
      if (entry.storing === undefined) clock.soon(() => void settle(entry));
    },
    repeat(link) {
      const entry = entries.get(keyOf(link.tenant_id, link.agent_id));
      if (entry !== undefined) clock.soon(() => sayAck(entry));
    },
    async settled(tenant_id, agent_id) {
      const entry = entries.get(keyOf(tenant_id, agent_id));
      if (entry !== undefined) await settle(entry);
    },
    async recall(tenant_id) {
      for (const { agent_id } of await directory.agents(tenant_id)) {
        const link = await links.of(tenant_id, agent_id);
        if (attached(link)) close(link.edge_id, link.connection_id, closeCodes.restarting, 'come back');
      }
    },
    stale(tenant_id) {
      for (const entry of entries.values()) if (entry.link.tenant_id === tenant_id) entry.stale = true;
    },
    tick() {
      const now = clock.now();
      for (const [key, entry] of entries) {
        const { link } = entry;
        if (!attached(link)) {
          if (link.seen_at < now - 600_000) entries.delete(key);
          continue;
        }
        if (link.done_seq > link.stored_seq) void settle(entry);
        if (!entry.resync && link.acked_seq >= (link.sent_seq ?? Number.POSITIVE_INFINITY)) continue;
        if (now < entry.resendAt) continue;
        entry.resend_ms = Math.min(lastResend_ms, entry.resend_ms * 2);
        entry.resendAt = now + entry.resend_ms;
        entry.resync = true;
        void resync(entry);
      }
    },
  };
  return links;
}
