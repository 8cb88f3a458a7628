import { appendFileSync } from 'node:fs';
import { runAgent } from '@iris/agent-link';

/** The agent of a turn storm, in a process of its own that is killed now and then. It writes down what it begins and what it has done. */
const { IRIS_GATEWAY_URL: gateway = '', IRIS_AGENT_TOKEN: token = '', IRIS_SPOOL_DIR: spool = '', STORM_LOG: file = '' } = process.env;
const note = (what: 'began' | 'did', turn_id: string, text: string) =>
  appendFileSync(file, `${JSON.stringify({ what, turn_id, text, pid: process.pid })}\n`);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const agent = runAgent({
  gateway,
  token,
  name: 'storm',
  spool,
  async onTurn(turn) {
    const { text } = turn.message;
    note('began', turn.turn_id, text);
    const kind = Number(/\d+$/.exec(text)?.[0] ?? 0) % 4;
    if (kind === 1) {
      const tool = turn.tool('work', { preview: text });
      await pause(60);
      tool.end({ output_preview: 'worked' });
    }
    if (kind === 2)
      await turn.ask.choice({ title: text, choices: ['yes', 'no'].map((value) => ({ value, label: value })), timeout_ms: 6_000 });
    if (kind === 3) turn.reason(`thinking of ${text}`);
    for (let word = 0; word < 12 && !turn.signal.aborted; word++) {
      turn.write(`${text}.${word} `);
      await pause(15);
    }
    turn.write(`done ${text}`);
    turn.stop();
    // What was said is promised from the moment that it is stored; the gateway's ack shows that it is.
    for (let looks = 0; looks < 400; looks++, await pause(5)) if (agent.unacked === 0) return note('did', turn.turn_id, text);
  },
});
