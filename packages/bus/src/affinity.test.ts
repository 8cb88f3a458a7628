import type { SessionId, TenantId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import { ownerOf } from './affinity.js';

const tenants = Array.from({ length: 3_000 }, (_, i) => `tnt_${i.toString(36)}` as TenantId);
const instances = ['s-a', 's-b', 's-c', 's-d'] as SessionId[];
const owners = (of: readonly SessionId[]) => tenants.map((tenant_id) => ownerOf(tenant_id, of));

describe('ownerOf', () => {
  test('the same for everyone, in whatever order they know the instances; nobody when there is none', () => {
    expect(owners([...instances].reverse())).toEqual(owners(instances));
    expect(ownerOf(tenants[0]!, [])).toBeUndefined();
  });

  test('an instance that goes moves its own tenants and no others, and they spread over the rest', () => {
    const before = owners(instances);
    const after = owners(instances.slice(1));
    const moved = tenants.map((_, i) => i).filter((i) => before[i] !== after[i]);
    expect(moved.every((i) => before[i] === 's-a')).toBe(true);
    expect(new Set(moved.map((i) => after[i])).size).toBe(3);
  });

  test('the load is even', () => {
    for (const instance of instances) {
      const share = owners(instances).filter((owner) => owner === instance).length / tenants.length;
      expect(share).toBeGreaterThan(0.2);
      expect(share).toBeLessThan(0.3);
    }
  });
});
