import { timingSafeEqual } from 'node:crypto';
import type { HelloAnswer } from '@iris/bus';
import type { Registered } from '@iris/outbox';
import {
  closeCodes,
  type DownFrame,
  defaultQuotas,
  deviceCaps,
  encode,
  limits,
  type Quotas,
  RequestError,
  rateLimited,
  type TenantId,
  tenantOfToken,
} from '@iris/protocol';
import { type DeviceRow, type TokenRow, tokenHash } from '@iris/store';
import { goingOn } from '../agent/room.js';
import type { Answer, Context, DeviceRequest } from '../context.js';
import { channelEntry, laneFrame } from '../rules/frames.js';
import { snapshotFrames, snapshotRevs } from '../rules/snapshot.js';
import { isOpen } from './picker-select.js';
import { type Welcome, welcome } from './welcome.js';

/** The tenant or the edge has no room; the close code says so, and the error when to come back. */
const fullRetry_ms = 60_000;
const utf8 = new TextEncoder();
const text = new TextDecoder();

/**
 * A device says hello. Its registration, and what it is told of what is going on, are taken at one place in the tenant's order: everything before
 * is in the outbox at or below the head it is given, everything after comes to it live.
 */
export async function hello(request: DeviceRequest<'hello'>, context: Context): Promise<Answer> {
  const { frame, origin } = request;
  const { store, clock, emitter, presence } = context;
  const { payload } = frame;
  try {
    const { tenant_id, token, quotas } = await admit(payload.token, 'device', context);
    if (token.device_id !== null && token.device_id !== payload.device_id) throw refusedToken();
    const said = await store.devices.hello({
      tenant_id,
      device_id: request.device_id,
      name: payload.device_name ?? '',
      caps: typeof payload.caps === 'object' && payload.caps !== null ? { ...payload.caps } : {},
      token_id: token.token_id,
      at: clock.now(),
      max: quotas.devices,
    });
    if (said === 'revoked') throw refusedToken();
    if (said === 'over_quota') throw rateLimited('no more devices', fullRetry_ms);
    const push = await welcome(request, tenant_id, context);
    await checkConnections(request, tenant_id, quotas, context);

    let body = new Uint8Array();
    const placing = emitter.emit({
      kind: 'greeting',
      tenant_id,
      deadline: request.deadline,
      device: { ...origin, device_id: request.device_id, watermark: said.row.watermark, new: said.created },
      async effects(registered, values) {
        const answer = await answerOf({ tenant_id, token, quotas, device: said.row, push, registered, values }, context);
        body = utf8.encode(JSON.stringify(answer));
        const { replaced } = registered;
        return {
          answer: { to: origin, body },
          close:
            replaced === undefined
              ? []
              : [{ ...replaced, code: closeCodes.replaced, reason: 'a newer connection of this device took over' }],
          know: () => presence.came(tenant_id, request.device_id, origin),
        };
      },
    });
    request.entered();
    await placing;
    return { kind: 'said', body };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return { kind: 'body', body: refusal(request.tenant_id, error) };
  }
}

/** The same for every reason: a wrong token and an unknown tenant look alike. */
export const refusedToken = (): RequestError => new RequestError('auth', 'not accepted');

/**
 * Whom a token opens. @throws RequestError `auth`
 * @param token as the peer gave it; the tenant it names is only where to look
 */
export async function admit(
  token: string,
  kind: TokenRow['kind'],
  context: Pick<Context, 'directory' | 'clock'>,
): Promise<{ tenant_id: TenantId; token: TokenRow; quotas: Quotas }> {
  const tenant_id = tenantOfToken(token);
  const hash = tokenHash(token);
  const row = tenant_id === undefined ? undefined : await context.directory.token(tenant_id, hash);
  // The look-up is by hash already; compared once more so that no time tells how much of it was right.
  const same = timingSafeEqual(Buffer.from(hash), Buffer.from((row?.hash ?? '').padEnd(hash.length, ' ').slice(0, hash.length)));
  if (tenant_id === undefined || row === undefined || !same || row.kind !== kind || row.revoked_at !== null || isOver(row, context))
    throw refusedToken();
  const tenant = await context.directory.tenant(tenant_id);
  if (tenant?.active !== true) throw refusedToken();
  return { tenant_id, token: row, quotas: tenant.quotas };
}

/** Rotated away: it opens nothing more, and what it has opened stays open. */
const isOver = ({ expires_at }: TokenRow, { clock }: Pick<Context, 'clock'>) => expires_at !== null && expires_at <= clock.now();

/** A device has at most one connection, so there is nothing to count while a tenant may have as many as devices. */
async function checkConnections(request: DeviceRequest<'hello'>, tenant_id: TenantId, quotas: Quotas, { emitter }: Context): Promise<void> {
  if (quotas.connections >= quotas.devices) return;
  const live = await emitter.connections(tenant_id);
  if (live.filter((device_id) => device_id !== request.device_id).length >= quotas.connections)
    throw rateLimited('no more connections', fullRetry_ms);
}

async function answerOf(
  known: {
    tenant_id: TenantId;
    token: TokenRow;
    quotas: Quotas;
    device: DeviceRow;
    push: Welcome;
    registered: Registered;
    values: ReadonlyMap<string, string>;
  },
  { store, clock, config, directory, log }: Context,
): Promise<HelloAnswer> {
  const { tenant_id, token, quotas, device, push, registered, values } = known;
  const [{ rows }, pickers, owed] = await Promise.all([
    directory.channels(tenant_id),
    store.pickers.list(tenant_id),
    store.receipts.take(tenant_id, device.device_id),
  ]);
  const { turns, textOf } = goingOn(values, log);
  const gone =
    owed.length === 0
      ? new Set()
      : await store.messages.deleted(
          tenant_id,
          owed.map(({ message_id }) => message_id),
        );
  const receipts = owed
    .filter(({ message_id }) => !gone.has(message_id))
    .map(({ message_id, ...lane }) => laneFrame('read.receipt', lane, { message_id }));
  // Past its time, it is only closed still.
  const open = pickers.filter((picker) => isOpen(picker, { clock }));
  const frames: DownFrame[] = [...snapshotFrames(turns, textOf, open, deviceCaps(device.caps)), ...receipts];
  return {
    tenant_id,
    token_id: token.token_id,
    ack: {
      server_caps: {
        streaming: true,
        reasoning: true,
        tools: true,
        media: true,
        search: true,
        push: push.kind,
        pickers: true,
        cursors: true,
        delta: true,
      },
      last_pushed_cursor: Math.max(device.last_pushed_cursor, push.last_pushed_cursor),
      channels: rows.map(channelEntry),
      limits: { text_bytes: limits.text_bytes, frame_bytes: limits.frame_bytes, file_bytes: quotas.file_bytes },
      server_ts: clock.now(),
      ...(config.push_vapid_public_key === undefined ? {} : { push: { vapid_key: config.push_vapid_public_key } }),
    },
    head: registered.head,
    watermark: registered.watermark,
    frames: frames.map((frame) => text.decode(encode(frame))),
    revs: snapshotRevs(turns, textOf),
    quotas: ratesOf(quotas),
  };
}

const ratesOf = ({ frames_per_second, frames_burst, sends_per_second, sends_burst }: Quotas): HelloAnswer['quotas'] => ({
  frames_per_second,
  frames_burst,
  sends_per_second,
  sends_burst,
});

function refusal(tenant_id: TenantId, { code, message, retry_after_ms }: RequestError): Uint8Array<ArrayBuffer> {
  const refused = {
    code,
    message,
    close: code === 'auth' ? closeCodes.auth : closeCodes.full,
    ...(retry_after_ms === undefined ? {} : { retry_after_ms }),
  };
  const answer: HelloAnswer = {
    tenant_id,
    token_id: '',
    refused,
    ack: {},
    head: 0,
    watermark: 0,
    frames: [],
    quotas: ratesOf(defaultQuotas),
  };
  return utf8.encode(JSON.stringify(answer));
}
