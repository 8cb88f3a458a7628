import type { Clock } from './clock.js';
import type { Random } from './ids.js';
import type { LaneContext } from './lane.js';
import type { LinkEnd } from './link.js';
import type { Log } from './log.js';
import type { Connect } from './socket.js';
import type { Spool } from './spool.js';
import type { Caps, Channel, Command, Lane, SearchResults, TurnHandler } from './types.js';

export interface AgentOptions {
  /** `wss://<gateway>/agent`. */
  readonly gateway: string;
  /** The agent's token: it opens one tenant and one agent. */
  readonly token: string;
  /** 1–64 characters. */
  readonly name: string;
  readonly version?: string;
  /** A folder of this agent's own: with it a restart loses nothing that was said. Without: memory only. */
  readonly spool?: string | Spool;
  /** The catalog behind `/`. */
  readonly commands?: readonly Command[];
  /** Runs a turn. What it throws ends the turn as failed, and the person is told. */
  readonly onTurn: TurnHandler;
  /** Messages were deleted: forget them too. The gateway repeats it until this is done. */
  readonly onDeleted?: (deleted: DeletedMessages) => DeletedAnswer | Promise<DeletedAnswer>;
  readonly onStatus?: (status: LinkStatus) => void;
  /** Abilities to name otherwise than the SDK does by itself. */
  readonly caps?: Caps;
  readonly log?: Log;
  readonly connect?: Connect;
  readonly clock?: Clock;
  readonly random?: Random;
  /** Puts media bytes where the gateway said; default: HTTP PUT. */
  readonly putBytes?: LaneContext['putBytes'];
}

export interface DeletedMessages {
  readonly chat_id: string | undefined;
  readonly thread_id: string | null;
  readonly message_ids: readonly string[];
  /** Of those that this agent said: what it called them (what `say` gave back), by the gateway's id. */
  readonly own_ids: ReadonlyMap<string, string>;
}
// biome-ignore lint/suspicious/noConfusingVoidType: a handler that returns nothing is fine
export type DeletedAnswer = { readonly removed?: readonly string[]; readonly missing?: readonly string[] } | void;

export type LinkStatus =
  | { readonly state: 'online' }
  | { readonly state: 'offline'; readonly code: number; readonly reason: string }
  | { readonly state: 'ended'; readonly end: LinkEnd };

export interface Agent {
  readonly online: boolean;
  /** Durable frames the gateway has not acked yet. */
  readonly unacked: number;
  /** Channels and threads, as the gateway last told. */
  channels(): readonly Channel[];
  /** Speak outside any turn (cron). Without arguments: the default channel. */
  lane(chat_id?: string, thread_id?: string | null): Lane;
  /** Rejects with `LinkError`. */
  createChannel(name: string): Promise<Channel>;
  /** In all lanes, or in one. Rejects with `LinkError`. */
  search(query: string, lane?: { chat_id: string; thread_id?: string | null }): Promise<SearchResults>;
  setCommands(commands: readonly Command[]): void;
  /**
   * End: running turns are stopped and end as interrupted, then up to `flush_ms` (default 3,000) for the gateway to ack what was said.
   * `finish_ms` lets running turns come to their own end first; new ones are left to the next process.
   */
  stop(options?: { finish_ms?: number; flush_ms?: number }): Promise<LinkEnd>;
  /** Resolves when the agent is over: stopped, or the gateway ended it (a refused token, a newer link). Never rejects. */
  readonly stopped: Promise<LinkEnd>;
}
