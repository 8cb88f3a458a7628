import { existsSync, readFileSync } from 'node:fs';
import type { PickerId } from '@iris/protocol';
import { expectChecks, type Logged } from '../checks/index.js';
import type { AnyFrame } from '../frames.js';
import type { Cluster, ClusterTenant } from './cluster.js';
import { outboxLog } from './outbox-log.js';

export interface StormReport {
  readonly turns: number;
  readonly completed: number;
  /** Whose agent process was killed while it worked. */
  readonly interrupted: number;
  /** Every one of them is over: a person answered, its time was up or it was taken back, or its turn ended first. */
  readonly pickers: Readonly<Record<'answered' | 'expired' | 'turn_ended', number>>;
  readonly kills: Readonly<Record<'agent' | 'edge' | 'session', number>>;
  readonly took_ms: number;
}

interface Noted {
  readonly what: 'began' | 'did';
  readonly turn_id: string;
  readonly text: string;
}

/** What must hold of a storm when everything has come to rest. @param log what its agents wrote down. @throws with what does not hold */
export async function verifyStorm(
  cluster: Cluster,
  tenant: ClusterTenant,
  log: string,
  turns: number,
): Promise<Pick<StormReport, 'turns' | 'completed' | 'interrupted' | 'pickers'>> {
  const noted = existsSync(log)
    ? readFileSync(log, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Noted)
    : [];
  const faults: string[] = [];
  const count = (items: readonly string[]) =>
    items.reduce((found, item) => found.set(item, (found.get(item) ?? 0) + 1), new Map<string, number>());
  for (const [text, times] of count(noted.filter(({ what }) => what === 'began').map(({ text }) => text)))
    if (times > 1) faults.push(`"${text}" was begun ${times} times`);
  // The whole of what was appended: while no device was there, `sync` tells less of it.
  const evidence = { ...(await tenant.evidence({ lossy: false })), log: await outboxLog(cluster, tenant) };
  expectChecks({
    ...evidence,
    devices: evidence.devices.filter(({ device_id, connected }) => connected && !device_id.startsWith('look-')),
  });
  const messages = [...evidence.histories.values()].flat();
  const said = count(
    messages.filter(({ role }) => role === 'assistant').flatMap(({ text = '' }) => /done (storm \d+)$/.exec(text)?.[1] ?? []),
  );
  const asked = count(messages.filter(({ role }) => role === 'user').map(({ text = '' }) => text));
  const done = new Set(noted.filter(({ what }) => what === 'did').map(({ text }) => text));
  for (let number = 0; number < turns; number++) {
    const text = `storm ${number}`;
    if (asked.get(text) !== 1) faults.push(`"${text}" is in history ${asked.get(text) ?? 0} times`);
    if ((said.get(text) ?? 0) > 1) faults.push(`the final of "${text}" is there ${said.get(text)} times`);
    if (done.has(text) && !said.has(text)) faults.push(`the final of "${text}" is missing`);
  }
  const rows = await cluster.store.turns.open(tenant.tenant_id);
  if (rows.length > 0) faults.push(`${rows.length} turns are open`);
  const pickers = await pickersOf(cluster, tenant, evidence.log, faults);
  if (faults.length > 0) throw new Error(`${faults.length} faults\n${faults.slice(0, 20).join('\n')}`);
  return { turns, completed: said.size, interrupted: turns - said.size, pickers };
}

/** How each question ended, in what devices were told and in the store: once, and in both alike. */
async function pickersOf(
  cluster: Cluster,
  { tenant_id }: ClusterTenant,
  log: readonly Logged[],
  faults: string[],
): Promise<StormReport['pickers']> {
  const ends = new Map<string, AnyFrame['payload'][]>();
  for (const { frame } of log) {
    if (frame.type === 'picker.choice') ends.set(frame.payload.picker_id!, []);
    else if (frame.type === 'picker.closed') {
      const told = ends.get(frame.payload.picker_id!);
      if (told === undefined) faults.push(`${frame.payload.picker_id} is closed and was never opened`);
      else told.push(frame.payload);
    }
  }
  const pickers = { answered: 0, expired: 0, turn_ended: 0 };
  for (const [picker_id, told] of ends) {
    if (told.length !== 1) faults.push(`${picker_id} was closed ${told.length} times`);
    const row = await cluster.store.pickers.get(tenant_id, picker_id as PickerId);
    if (row === undefined || row.state === 'open') faults.push(`${picker_id} is ${row?.state ?? 'gone'} in the store`);
    const answered = told[0]?.value !== undefined;
    if (answered !== (row?.state === 'answered') || (answered && row?.value !== told[0]?.value))
      faults.push(`${picker_id} is ${row?.state} ${row?.value} in the store, and devices were told ${JSON.stringify(told[0])}`);
    pickers[answered ? 'answered' : told[0]?.reason === 'turn_ended' ? 'turn_ended' : 'expired']++;
  }
  return pickers;
}
