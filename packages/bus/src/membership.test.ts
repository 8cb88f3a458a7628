import type { SessionId } from '@iris/protocol';
import { manualClock } from '@iris/runtime/testing';
import { describe, expect, test } from '@jest/globals';
import { announceDead_ms } from './hop.js';
import { announceSession, watchSessions } from './membership.js';
import { type Delivery, memoryHub } from './memory-bus.js';

const s1 = 's1' as SessionId;
const s2 = 's2' as SessionId;

function setting(deliver?: (delivery: Delivery) => void) {
  const clock = manualClock(0);
  const hub = memoryHub({ clock, ...(deliver === undefined ? {} : { deliver }) });
  const edgeBus = hub.connect('e1');
  const watch = watchSessions({ bus: edgeBus, clock });
  const changes: string[] = [];
  watch.onChange((live) => changes.push([...live].sort().join(' ')));
  return { clock, hub, edgeBus, watch, changes };
}

describe('membership of session instances', () => {
  test('an instance is known as soon as it announces itself, and stays while it does', async () => {
    const { clock, hub, watch, changes } = setting();
    announceSession({ bus: hub.connect('s1'), clock, session_id: s1 });
    await clock.settle();
    expect([...watch.live]).toEqual([s1]);
    announceSession({ bus: hub.connect('s2'), clock, session_id: s2 });
    await clock.advance(30_000);
    expect(changes).toEqual(['s1', 's1 s2']);
  });

  test('an edge that comes later asks, and does not wait for the next round', async () => {
    const { clock, hub } = setting();
    announceSession({ bus: hub.connect('s1'), clock, session_id: s1 });
    await clock.settle();
    const later = watchSessions({ bus: hub.connect('e2'), clock });
    await clock.settle();
    expect([...later.live]).toEqual([s1]);
    expect(clock.now()).toBe(0);
  });

  test('one that leaves is out at once, and an announcement it overtook does not bring it back', async () => {
    const late: Delivery[] = [];
    let keep = false;
    const { clock, hub, watch } = setting((delivery) => {
      if (keep) late.push(delivery);
      else queueMicrotask(delivery.run);
    });
    const announcer = announceSession({ bus: hub.connect('s1'), clock, session_id: s1 });
    await clock.settle();
    keep = true;
    await clock.advance(1_000);
    keep = false;
    announcer.leave();
    announcer.leave();
    await clock.settle();
    expect([...watch.live]).toEqual([]);
    expect(late).toHaveLength(1);
    for (const delivery of late) delivery.run();
    expect([...watch.live]).toEqual([]);
  });

  test('one that falls silent is out after its time, not before', async () => {
    const { clock, hub, watch } = setting();
    const bus = hub.connect('s1');
    announceSession({ bus, clock, session_id: s1 });
    await clock.settle();
    await bus.close();
    await clock.advance(announceDead_ms - 1);
    expect([...watch.live]).toEqual([s1]);
    await clock.advance(1);
    expect([...watch.live]).toEqual([]);
  });

  test('a suspect is out at once and back with its next announcement', async () => {
    const { clock, hub, watch, changes } = setting();
    announceSession({ bus: hub.connect('s1'), clock, session_id: s1 });
    await clock.settle();
    watch.suspect(s1);
    expect([...watch.live]).toEqual([]);
    watch.suspect(s1);
    await clock.advance(1_000);
    expect(changes).toEqual(['s1', '', 's1']);
  });

  test('silence of a broken line kills nobody, and after the break each gets its full time again', async () => {
    const { clock, hub, edgeBus, watch } = setting();
    const bus = hub.connect('s1');
    announceSession({ bus, clock, session_id: s1 });
    await clock.settle();
    edgeBus.setConnected(false);
    await clock.advance(60_000);
    expect([...watch.live]).toEqual([s1]);
    await bus.close();
    edgeBus.setConnected(true);
    await clock.advance(announceDead_ms - 1);
    expect([...watch.live]).toEqual([s1]);
    await clock.advance(1);
    expect([...watch.live]).toEqual([]);
  });

  test('an instance that regains the broker says so at once', async () => {
    const { clock, hub, watch } = setting();
    const bus = hub.connect('s1');
    announceSession({ bus, clock, session_id: s1 });
    bus.setConnected(false);
    await clock.advance(announceDead_ms + 100);
    expect([...watch.live]).toEqual([]);
    bus.setConnected(true);
    await clock.settle();
    expect([...watch.live]).toEqual([s1]);
  });

  test('nothing is left running at the end', async () => {
    const { clock, hub, watch } = setting();
    const announcer = announceSession({ bus: hub.connect('s1'), clock, session_id: s1 });
    await clock.settle();
    announcer.leave();
    await clock.settle();
    watch.end();
    expect(clock.timers).toBe(0);
  });
});
