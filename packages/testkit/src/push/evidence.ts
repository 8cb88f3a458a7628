import type { TenantId } from '@iris/protocol';
import type { PushLedgerRow, Store } from '@iris/store';
import type { PushEvidence } from '../checks/index.js';
import type { Fakes } from './fakes.js';

/** What O12 is judged by: of every device that has an address, since it has it. */
export async function pushEvidence(store: Store, fakes: Fakes, tenant_id: TenantId): Promise<PushEvidence[]> {
  const [targets, devices] = await Promise.all([store.pushTargets.list(tenant_id), store.devices.list(tenant_id)]);
  const evidence = devices.map(async ({ device_id, last_pushed_cursor }) => {
    const own = targets.filter((target) => target.device_id === device_id);
    const since = Math.min(...own.map(({ registered_at }) => registered_at));
    const accepted = own.flatMap(({ kind, address, registered_at }) =>
      pushedTo(fakes, kind, address).filter(({ at }) => at >= registered_at),
    );
    const rows = await store.pushLedger.explain(tenant_id, device_id, { limit: 1_000_000 });
    // What went to an address that it had before, or that its provider calls dead, cannot be held against the fakes any more.
    const seen = ({ decided_at, provider }: PushLedgerRow) => decided_at >= since && own.some(({ kind }) => kind === provider);
    return own.length === 0 ? [] : [{ device_id, rows, last_pushed_cursor, accepted, seen }];
  });
  return (await Promise.all(evidence)).flat();
}

function pushedTo({ fcm, webpush, ntfy }: Fakes, kind: 'fcm' | 'webpush' | 'ntfy', address: string): { cursor: number; at: number }[] {
  const pushes = (all: readonly { readonly data: Readonly<Record<string, string>>; readonly at: number }[]) =>
    all.flatMap(({ data, at }) => (data.type === 'push' ? [{ cursor: Number(data.cursor), at }] : []));
  if (kind === 'fcm') return pushes(fcm.accepted.filter(({ token }) => token === address));
  if (kind === 'webpush')
    return pushes(
      webpush.accepted.filter(({ name }) => address.endsWith(`/push/${name}`)).map(({ payload, at }) => ({ data: payload, at })),
    );
  return ntfy.published
    .filter(({ topic }) => topic === address)
    .map(({ sequence_id, at }) => ({ cursor: Number(sequence_id.split('-').at(-1)), at }));
}
