import { runAgent } from '@iris/agent-link';
import { silentLog } from '@iris/runtime';
import { agentProcess, lane, onStage } from '@iris/testkit';
import { expect, test } from '@jest/globals';

/** Milliseconds from the send to the stop: each of the first twenty, then every 47 up to the end of the turn and beyond. */
const offsets = [...Array.from({ length: 20 }, (_, i) => i), ...Array.from({ length: 40 }, (_, i) => 20 + i * 47)];

test('STO1 C27 C29: a stop at any moment from 0 ms after the send takes effect within 2 s, from either device through either edge', () =>
  onStage(
    async ({ world, tenant, a, b }) => {
      const { clock, connect } = agentProcess(world, 'agent');
      let begun = 0;
      const agent = runAgent({
        gateway: 'ws://world/agent',
        token: tenant.agent_token,
        name: 'slow',
        clock,
        connect,
        random: world.chance.fork('agent').unit,
        log: silentLog,
        // Half a second of thinking, a tool, and a second of words: a stop meets every kind of moment.
        async onTurn(turn) {
          begun++;
          const aborted = new Promise<void>((resolve) => turn.signal.addEventListener('abort', () => resolve()));
          const pause = (ms: number) => Promise.race([aborted, new Promise<void>((resolve) => void clock.after(ms, resolve))]);
          await pause(300);
          turn.reason('Hm. ');
          await pause(200);
          const tool = turn.tool('search');
          await pause(300);
          tool.end();
          for (let word = 0; word < 20 && !turn.signal.aborted; word++) {
            turn.write(`word${begun}.${word} `);
            await pause(50);
          }
        },
      });
      await world.patience.wait(() => agent.online || undefined, { describe: () => 'the agent is not online' });

      const slowest = { ms: 0, at: -1 };
      for (const [count, offset] of offsets.entries()) {
        const [sender, stopper] = count % 2 === 0 ? [a, b] : [b, a];
        const from = stopper.received.all.length;
        const since = () => stopper.received.all.slice(from).map(({ frame }) => frame);
        const sent = sender.send(`question ${offset}`);
        if (offset > 0) await world.advance(offset);
        const asked = world.patience.now();
        const [echo, answer] = await Promise.all([sent, stopper.request('agent.stop', {}, lane)]);
        expect([offset, echo.type, answer.type]).toEqual([offset, 'message', 'ack']);
        await world.advance(2_000);
        const frames = since();
        const at = frames.findIndex(({ type }) => type === 'agent.idle');
        // A stop that overtook the send (it came by the other edge) finds nothing to stop; then the turn runs to its end.
        const stopped = stopper.received.all.slice(from).find(({ frame }) => frame.type === 'agent.idle');
        if (stopped === undefined && frames.some(({ type }) => type === 'agent.busy')) {
          expect([offset, offset < 5]).toEqual([offset, true]);
          await stopper.next('agent.idle');
        } else {
          if (stopped && stopped.at - asked > slowest.ms) Object.assign(slowest, { ms: stopped.at - asked, at: offset });
          // Nothing of the turn behind its end, and the end once.
          expect([offset, at < 0 ? [] : frames.slice(at + 1).flatMap(({ type }) => (type === 'ack' ? [] : [type]))]).toEqual([offset, []]);
        }
        await world.advance(100);
        stopper.received.skip();
        sender.received.skip();
      }
      expect(slowest.ms).toBeLessThan(2_000);
      expect(begun).toBeGreaterThan(offsets.length / 2);
    },
    { agent: false },
  ));
