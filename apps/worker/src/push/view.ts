import type { Outbox } from '@iris/outbox';
import { type Cursor, type DeviceId, laneKey, type MessageId, type PickerId, type TenantId } from '@iris/protocol';
import type { Clock } from '@iris/runtime';
import type { DeviceRow, MessageRow, PickerRow, PushContent, PushFrameRow, PushKind, PushRuleRow, PushTargetRow, Store } from '@iris/store';

/** How far a device has come, and whether it is connected. */
export interface Standing {
  readonly watermark: Cursor;
  readonly live: boolean;
}

/** All that a decision about a tenant's pushes looks at, as it was at one moment. */
export interface View {
  readonly tenant_id: TenantId;
  readonly at: number;
  readonly content: PushContent;
  /** Those that could say hello now: neither they nor their token are revoked, and their tenant is not suspended. */
  readonly devices: ReadonlyMap<DeviceId, DeviceRow>;
  /** Whom can carry something to a device, the one to be asked first in front. */
  readonly targets: ReadonlyMap<DeviceId, readonly PushTargetRow[]>;
  readonly standing: ReadonlyMap<DeviceId, Standing>;
  /** By lane: how far each device has read it. */
  readonly reads: ReadonlyMap<string, ReadonlyMap<DeviceId, Cursor>>;
  readonly rules: ReadonlyMap<DeviceId, readonly PushRuleRow[]>;
  /** Of lanes. */
  readonly names: ReadonlyMap<string, string>;
  readonly frames: ReadonlyMap<Cursor, PushFrameRow>;
  /** Those of the frames that stand. */
  readonly messages: ReadonlyMap<MessageId, MessageRow>;
  readonly pickers: ReadonlyMap<PickerId, PickerRow>;
  /** Lanes with an open picker. */
  readonly asking: ReadonlySet<string>;
  /** The outbox has lost its place: who is connected, and what they have, may not be known yet. */
  readonly unsettled: boolean;
}

const preference: readonly PushKind[] = ['fcm', 'webpush', 'ntfy'];

export async function loadView(
  { store, outbox, clock }: { store: Store; outbox: Outbox; clock: Clock },
  tenant_id: TenantId,
  frames: readonly PushFrameRow[],
  providers: readonly string[],
): Promise<View> {
  const at = clock.now();
  const ids = <T>(of: (frame: PushFrameRow) => T | null): T[] => [...new Set(frames.flatMap((frame) => of(frame) ?? []))];
  const [tenant, tokens, content, devices, targets, marks, reads, rules, channels, messages, pickers, open, page] = await Promise.all([
    store.tenants.get(tenant_id),
    store.tokens.list(tenant_id),
    store.pushRules.content(tenant_id),
    store.devices.list(tenant_id),
    store.pushTargets.list(tenant_id),
    outbox.devices(tenant_id),
    store.reads.list(tenant_id),
    store.pushRules.list(tenant_id),
    store.channels.list(tenant_id),
    store.messages.standing(
      tenant_id,
      ids(({ message_id }) => message_id),
    ),
    store.pickers.these(
      tenant_id,
      ids(({ picker_id }) => picker_id),
    ),
    store.pickers.list(tenant_id),
    outbox.read(tenant_id, Number.MAX_SAFE_INTEGER, { limit: 1 }),
  ]);
  const over = new Set(tokens.flatMap((token) => (token.revoked_at !== null || (token.expires_at ?? at) < at ? [token.token_id] : [])));
  const opens = ({ revoked_at, token_id }: DeviceRow) => tenant?.state === 'active' && revoked_at === null && !over.has(token_id);
  const marked = new Map(marks.map((mark) => [mark.device_id, mark]));
  const standing = devices.map((device) => {
    const mark = marked.get(device.device_id);
    return [
      device.device_id,
      { watermark: Math.max(device.watermark, mark?.watermark ?? 0), live: mark?.connection_id !== undefined },
    ] as const;
  });
  const usable = targets
    .filter(({ kind }) => providers.includes(kind))
    .sort((a, b) => preference.indexOf(a.kind) - preference.indexOf(b.kind));
  return {
    tenant_id,
    at,
    content,
    devices: new Map(devices.filter(opens).map((device) => [device.device_id, device])),
    targets: grouped(usable, ({ device_id }) => device_id),
    standing: new Map(standing),
    reads: new Map(
      [...grouped(reads, laneKey)].map(([lane, rows]) => [lane, new Map(rows.map(({ device_id, cursor }) => [device_id, cursor]))]),
    ),
    rules: grouped(rules, ({ device_id }) => device_id),
    names: new Map(channels.map((channel) => [laneKey(channel), channel.name])),
    frames: new Map(frames.map((frame) => [frame.cursor, frame])),
    messages: new Map(messages.map((row) => [row.message_id, row])),
    pickers: new Map(pickers.map((row) => [row.picker_id, row])),
    asking: new Set(open.map(laneKey)),
    unsettled: page.unseeded === true,
  };
}

export function grouped<T, K>(rows: readonly T[], by: (row: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const row of rows) {
    const group = groups.get(by(row));
    if (group === undefined) groups.set(by(row), [row]);
    else group.push(row);
  }
  return groups;
}
