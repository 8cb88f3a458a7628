import type { AgentId, TurnId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import { frameKeysKept_ms, voidFrame } from '../agent-frame.js';
import { link } from './agents.js';
import { newTenant, type Subject, unique } from './clients.js';

const frame = (n: number, fields: Record<string, unknown> = {}) => ({
  v: 1,
  type: 'turn.start',
  turn_id: `tn_${n}`,
  payload: { n },
  ...fields,
});

export function agentFrames(subject: Subject): void {
  describe('agent frames', () => {
    test('append: each the next number, in order; after and ack go by it', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      const rows = await a.agentFrames.append(tenant_id, agent_id, [{ frame: frame(1) }, { frame: frame(2) }]);
      expect(rows).toEqual([1, 2].map((seq) => ({ tenant_id, agent_id, seq, frame: frame(seq) })));
      const more = await b.agentFrames.append(tenant_id, agent_id, [{ frame: frame(3) }]);
      expect(more[0]?.seq).toBe(3);
      expect((await a.agents.get(tenant_id, agent_id))?.out_seq).toBe(3);
      expect(await b.agentFrames.after(tenant_id, agent_id, 0)).toEqual([...rows, ...more]);
      expect(await b.agentFrames.after(tenant_id, agent_id, 2)).toEqual(more);
      await b.agentFrames.ack(tenant_id, agent_id, 2);
      await b.agentFrames.ack(tenant_id, agent_id, 1);
      expect(await a.agentFrames.after(tenant_id, agent_id, 0)).toEqual(more);
      expect((await a.agentFrames.append(tenant_id, agent_id, [{ frame: frame(4) }]))[0]?.seq).toBe(4);
      expect(await a.agentFrames.append(tenant_id, agent_id, [])).toEqual([]);
      expect(await a.agentFrames.append(tenant_id, unique<AgentId>('ag'), [{ frame: frame(1) }])).toEqual([]);
    });

    test('append: numbers are dense and each given once, when many append at once', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      const appended = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          (n % 2 ? a : b).agentFrames.append(tenant_id, agent_id, [{ frame: frame(n) }, { frame: frame(n) }]),
        ),
      );
      expect(
        appended
          .flat()
          .map((row) => row.seq)
          .sort((x, y) => x - y),
      ).toEqual(Array.from({ length: 40 }, (_, n) => n + 1));
      for (const [first, second] of appended) expect(second!.seq).toBe(first!.seq + 1);
    });

    test('append: a key that stands gives the frame that stands; within one call, and from many at once', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      const rows = await a.agentFrames.append(tenant_id, agent_id, [
        { frame: frame(1), key: 'k1' },
        { frame: frame(2) },
        { frame: frame(3), key: 'k1' },
      ]);
      expect(rows.map((row) => [row.seq, row.frame])).toEqual([
        [1, frame(1)],
        [2, frame(2)],
        [1, frame(1)],
      ]);
      const retries = await Promise.all(
        [a, b, a, b].map((store) => store.agentFrames.append(tenant_id, agent_id, [{ frame: frame(9), key: 'k2' }])),
      );
      expect(retries.map(([row]) => row?.seq)).toEqual([3, 3, 3, 3]);
      expect(await a.agentFrames.after(tenant_id, agent_id, 0)).toHaveLength(3);
    });

    test('append: the key of an acked frame gives seq 0, for a day', async () => {
      const { a, b, clock } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      await a.agentFrames.append(tenant_id, agent_id, [{ frame: frame(1), key: 'k1' }]);
      await a.agentFrames.ack(tenant_id, agent_id, 1);
      expect(await b.agentFrames.append(tenant_id, agent_id, [{ frame: frame(1), key: 'k1' }])).toEqual([
        { tenant_id, agent_id, seq: 0, frame: frame(1) },
      ]);
      expect(await b.agentFrames.after(tenant_id, agent_id, 0)).toEqual([]);
      await clock.advance(frameKeysKept_ms - 1);
      await a.agentFrames.ack(tenant_id, agent_id, 1);
      expect((await b.agentFrames.append(tenant_id, agent_id, [{ frame: frame(1), key: 'k1' }]))[0]?.seq).toBe(0);
      await clock.advance(2);
      await a.agentFrames.ack(tenant_id, agent_id, 1);
      expect((await b.agentFrames.append(tenant_id, agent_id, [{ frame: frame(1), key: 'k1' }]))[0]?.seq).toBe(2);
    });

    test('a new install: what is unacked is numbered from 1; the same install keeps its numbers', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      await a.agents.attach(tenant_id, link(agent_id));
      const many = Array.from({ length: 15 }, (_, n) => ({ frame: frame(n + 1), ...(n === 6 ? { key: 'k7' } : {}) }));
      await a.agentFrames.append(tenant_id, agent_id, many);
      await a.agentFrames.ack(tenant_id, agent_id, 5);
      const same = await b.agents.attach(tenant_id, link(agent_id, { boot_id: 'boot_2' }));
      expect(same?.row.out_seq).toBe(15);
      expect((await a.agentFrames.after(tenant_id, agent_id, 0)).map((row) => row.seq)).toEqual([6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
      const other = await b.agents.attach(tenant_id, link(agent_id, { install_id: 'install_2' }));
      expect(other?.row).toMatchObject({ in_seq: 0, out_seq: 10 });
      expect((await a.agentFrames.after(tenant_id, agent_id, 0)).map((row) => [row.seq, row.frame])).toEqual(
        Array.from({ length: 10 }, (_, n) => [n + 1, frame(n + 6)]),
      );
      const [retry, next] = await a.agentFrames.append(tenant_id, agent_id, [{ frame: frame(7), key: 'k7' }, { frame: frame(16) }]);
      expect([retry?.seq, next?.seq]).toEqual([2, 11]);
    });

    test('withdraw: the turn’s start is void, its number stays; nothing else is touched', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      const frames = [frame(1), frame(1, { type: 'agent.stop' }), frame(2)];
      await a.agentFrames.append(
        tenant_id,
        agent_id,
        frames.map((one, n) => ({ frame: one, key: `k${n}` })),
      );
      await b.agentFrames.withdraw(tenant_id, agent_id, 'tn_1' as TurnId);
      expect((await a.agentFrames.after(tenant_id, agent_id, 0)).map((row) => [row.seq, row.frame])).toEqual([
        [1, voidFrame],
        [2, frames[1]],
        [3, frames[2]],
      ]);
      expect((await a.agentFrames.append(tenant_id, agent_id, [{ frame: frame(1), key: 'k0' }]))[0]).toMatchObject({
        seq: 1,
        frame: voidFrame,
      });
    });
  });
}
