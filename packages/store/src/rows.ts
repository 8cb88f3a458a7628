/**
 * Rows as they are in Postgres, spelled as on the wire. JSON columns are typed where the protocol gives them a shape.
 * `thread_id` is null in a channel's own (flat) lane.
 */
import type {
  AgentId,
  ConnectionId,
  Cursor,
  DeviceId,
  EdgeId,
  InstallId,
  Lane,
  MediaId,
  MessageId,
  ObjectId,
  PickerId,
  Quotas,
  TenantId,
  TokenId,
  TurnId,
} from '@iris/protocol';

type Json = Record<string, unknown>;

export interface TenantRow {
  readonly tenant_id: TenantId;
  readonly name: string;
  readonly state: 'active' | 'suspended';
  /** Only what differs from the defaults. */
  readonly quotas: Partial<Quotas>;
  /** Cursors up to here may have been given. */
  readonly cursor_reserved: Cursor;
  readonly created_at: number;
}

export interface TokenRow {
  readonly tenant_id: TenantId;
  readonly token_id: TokenId;
  readonly kind: 'device' | 'agent' | 'admin';
  /** SHA-256 of the token, hex; the token itself is nowhere. */
  readonly hash: string;
  /** Set on a paired token: it opens this device only. */
  readonly device_id: DeviceId | null;
  readonly agent_id: AgentId | null;
  /** What an administrator's token allows; null for all others. */
  readonly role: AdminRole | null;
  /** What it is for, as whoever made it said. */
  readonly label: string;
  readonly created_at: number;
  /** From then on it opens nothing; what it has opened stays open. Null: never. */
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
}
export type AdminRole = 'owner' | 'admin' | 'read-only';

export interface PairingRow {
  readonly tenant_id: TenantId;
  /** SHA-256 of the code, hex. */
  readonly code_hash: string;
  readonly label: string;
  readonly created_at: number;
  readonly expires_at: number;
  readonly used_by: DeviceId | null;
}

export interface DeviceRow {
  readonly tenant_id: TenantId;
  readonly device_id: DeviceId;
  readonly name: string;
  /** What an operator calls it; null: what the app says. */
  readonly label: string | null;
  readonly caps: Json;
  readonly token_id: TokenId;
  /** Written behind; the outbox has the fresh one. */
  readonly watermark: Cursor;
  readonly last_pushed_cursor: Cursor;
  readonly created_at: number;
  readonly last_seen_at: number;
  readonly revoked_at: number | null;
}

export interface ChannelRow extends Lane {
  readonly tenant_id: TenantId;
  readonly kind: 'default' | 'channel' | 'thread';
  readonly name: string;
  readonly is_default: boolean;
  /** The gateway or an agent named it. */
  readonly auto: boolean;
  /** The agent that serves it; null: the tenant's default agent. */
  readonly agent_id: AgentId | null;
  readonly created_at: number;
}

export interface MessageRow extends Lane {
  readonly tenant_id: TenantId;
  readonly message_id: MessageId;
  readonly role: 'user' | 'assistant' | 'system' | 'cron';
  readonly text: string;
  readonly reasoning: string | null;
  readonly media: readonly Json[] | null;
  readonly reply_to: MessageId | null;
  readonly model: string | null;
  readonly tokens: number | null;
  readonly runtime: Json | null;
  /** Milliseconds, from the gateway's clock. Never an order. */
  readonly ts: number;
  /** Place in the order; null while its append is owed. */
  readonly cursor: Cursor | null;
  /** What a repeat under another id carries again; unique per tenant. Null: its id alone says what it is. */
  readonly idempotency_key: string | null;
  readonly client_ref: string | null;
  readonly device_id: DeviceId | null;
  readonly turn_id: TurnId | null;
  readonly steer: boolean;
  readonly interrupted: boolean;
  readonly late: boolean;
  /** What the agent that said it calls it; unique within its turn only. */
  readonly own_id: string | null;
}

export interface TurnRow extends Lane {
  readonly tenant_id: TenantId;
  readonly turn_id: TurnId;
  readonly agent_id: AgentId | null;
  /** The message that starts it. */
  readonly message_id: MessageId;
  readonly kind: 'chat' | 'command';
  /** `queued` → `sent` (turn.start is on its way) → `running` (accepted: never run twice) → `ended`. */
  readonly state: 'queued' | 'sent' | 'running' | 'ended';
  readonly outcome: 'completed' | 'failed' | 'cancelled' | 'interrupted' | null;
  readonly attempt: number;
  /** Of the agent's process that it was sent to last, then of the one that accepted it. */
  readonly boot_id: string | null;
  readonly stop_requested: boolean;
  /** Who sent the message: gets the `read.receipt`. */
  readonly device_id: DeviceId | null;
  readonly connection_id: ConnectionId | null;
  /** Order within the lane; given by the store. */
  readonly position: number;
  readonly created_at: number;
  readonly accepted_at: number | null;
  readonly ended_at: number | null;
}

export interface AgentRow {
  readonly tenant_id: TenantId;
  readonly agent_id: AgentId;
  readonly name: string;
  readonly is_default: boolean;
  readonly install_id: InstallId | null;
  readonly boot_id: string | null;
  /** Rises with each link; an older link may not act. */
  readonly epoch: number;
  readonly link_edge_id: EdgeId | null;
  readonly link_connection_id: ConnectionId | null;
  /** When the link was last known to be there; null before the first. */
  readonly link_seen_at: number | null;
  /** Highest `seq` of the agent that is processed and stored, for `install_id`. */
  readonly in_seq: number;
  readonly out_seq: number;
  readonly caps: Json;
  readonly commands: readonly Json[];
  readonly created_at: number;
}

/** What the gateway's own runner answers with in the agent's place. */
export interface AgentBackendRow {
  readonly tenant_id: TenantId;
  readonly agent_id: AgentId;
  /** A backend of the runner: `demo`, `openai`, `hermes`. */
  readonly kind: string;
  /** What is no secret: `url`, `model` and the like. */
  readonly settings: Json;
  /** The token with which the runner attaches. */
  readonly token_id: TokenId;
  /** That token, and the key of the endpoint when there is one, encrypted by whoever wrote it. */
  readonly sealed: string;
  readonly has_key: boolean;
  readonly changed_at: number;
}

export interface AgentFrameRow {
  readonly tenant_id: TenantId;
  readonly agent_id: AgentId;
  readonly seq: number;
  /** The frame's fields but `seq` and `ack`. */
  readonly frame: Json;
}

export interface PickerRow extends Lane {
  readonly tenant_id: TenantId;
  readonly picker_id: PickerId;
  readonly type: string;
  readonly payload: Json;
  readonly turn_id: TurnId | null;
  readonly agent_id: AgentId | null;
  /** The agent's own name for it. */
  readonly agent_picker_id: string | null;
  readonly state: 'open' | 'answered' | 'closed';
  readonly value: string | readonly string[] | null;
  /** Idempotency key of the request that won. */
  readonly answered_by: string | null;
  readonly expires_at: number | null;
  readonly created_at: number;
}

export interface ReadStateRow extends Lane {
  readonly tenant_id: TenantId;
  readonly device_id: DeviceId;
  readonly message_id: MessageId;
  readonly cursor: Cursor;
}

export interface MediaRow {
  readonly tenant_id: TenantId;
  readonly media_id: MediaId;
  /** The uploader's name for it; attached once. */
  readonly media_ref: string | null;
  readonly device_id: DeviceId | null;
  /** `offered`: an agent has shown it, outside of a message. `unused`: the last message that named it was deleted. */
  readonly state: 'uploading' | 'uploaded' | 'offered' | 'attached' | 'unused';
  readonly kind: string;
  readonly mime: string;
  readonly size: number;
  readonly filename: string;
  /** Of the bytes as they are given out; empty while it is uploading. */
  readonly sha256: string;
  readonly details: Json;
  readonly created_at: number;
  /** Where its bytes are, or will be. */
  readonly object_id: ObjectId | null;
  /** Of the bytes as they came; null while it is uploading. */
  readonly uploaded_sha256: string | null;
  /** Whether its type and details are known. */
  readonly processed: boolean;
}

export interface AuditRow {
  readonly tenant_id: TenantId | null;
  readonly at: number;
  readonly actor: string;
  readonly action: string;
  readonly subject: string;
}
