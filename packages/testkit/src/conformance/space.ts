import type { Payload } from '../frames.js';
import { type TestAgent, testAgent } from '../test-agent.js';
import { type TestDevice, testDevice } from '../test-device.js';
import type { Dial } from '../wire.js';
import { type Actor, actorOf } from './actor.js';
import { broken, need, type Space } from './check.js';
import type { Target } from './target.js';

/** Everything that was heard in a run, by whomever: what the watches look at. */
export interface Seen {
  readonly devices: TestDevice[];
  readonly agents: TestAgent[];
  /** Text frames that devices got. */
  frames: number;
  /** …that do not begin as every frame must. */
  readonly odd: string[];
}

export interface OpenSpace extends Space {
  /** Use another lane from now on. */
  talkIn(lane: Space['lane']): void;
  /** Close what was opened since the last time; the actor stays. */
  tidy(): Promise<void>;
  /** …and the actor goes. */
  close(): void;
}

const messageIdOf = ({ message }: Payload) => (message as { message_id?: string } | undefined)?.message_id;

let serial = 0;
const unique = () => `${Date.now().toString(36)}${(++serial).toString(36)}${process.pid.toString(36)}`;

export function openSpace(target: Target, tenant: { device_token: string; agent_token?: string }, seen: Seen): OpenSpace {
  const { doors, patience } = target;
  let devices: TestDevice[] = [];
  let agents: TestAgent[] = [];
  let actor: Promise<Actor> | undefined;
  let away = false;
  let lane: Space['lane'] = { chat_id: 'android:default', thread_id: null };
  const doorAt = (i: number) => doors[i % doors.length]!;
  const agentDial = (i: number): Dial => {
    const door = doorAt(i);
    const token = tenant.agent_token;
    if (door.agent === undefined || token === undefined) throw need('an agent token and the address of /agent');
    return door.agent(token);
  };
  /** Looks at every text before anybody else does. */
  const heard =
    (dial: Dial): Dial =>
    (events) =>
      dial({
        ...events,
        message(data) {
          if (typeof data === 'string') {
            seen.frames++;
            if (!data.startsWith('{"v":1,')) seen.odd.push(data.slice(0, 100));
          }
          events.message(data);
        },
      });

  const attach = async (): Promise<Actor> => {
    const made = actorOf(patience, (script) => {
      const agent = testAgent({ dial: agentDial(0), patience, install_id: `conformance-${unique()}`, script });
      seen.agents.push(agent);
      return agent;
    });
    const answer = await made.agent.connect();
    if (answer.type !== 'hello.ack') throw broken('LNK14', `the agent's hello was answered with ${JSON.stringify(answer)}`);
    return made;
  };
  /** What a check has said to the agent is answered before the next one looks: busy and idle of it would be taken for the next one's own. */
  const overWith = async (agent: TestAgent, those: readonly TestDevice[]): Promise<void> => {
    const said = those
      .flatMap(({ asked }) => asked)
      .filter(({ type, payload, answers }) => type === 'message.send' && payload.steer !== true && answers[0]?.type === 'message')
      .map(({ answers }) => answers[0]!.payload.message_id);
    const over = () => {
      const ended = [...agent.turns.values()].filter(({ state }) => state === 'ended').map(({ offer }) => messageIdOf(offer));
      return agent.unacked.length === 0 && said.every((message_id) => ended.includes(message_id as string)) ? true : undefined;
    };
    // What was taken back or deleted has no turn: that is not waited for.
    await patience.wait(over, { within_ms: 1_000, describe: () => '' }).catch(() => {});
  };
  const self: OpenSpace = {
    device_token: tenant.device_token,
    agent_token: tenant.agent_token,
    get lane() {
      return lane;
    },
    talkIn(other) {
      lane = other;
    },
    door: (i) => heard(doorAt(i).device),
    agentDoor: agentDial,
    device(label, { door = 0, caps, token = tenant.device_token, device_name } = {}) {
      const device = testDevice({
        device_id: `conformance-${label}`,
        token,
        patience,
        dial: self.door(door),
        ...(caps === undefined ? {} : { caps }),
        ...(device_name === undefined ? {} : { device_name }),
      });
      devices.push(device);
      seen.devices.push(device);
      return device;
    },
    newcomer: (how) => self.device(unique(), how),
    async join(label, how) {
      const device = self.device(label, how);
      const answer = await device.join();
      if (answer.type !== 'hello.ack') throw broken('HEL4', `hello was answered with ${JSON.stringify(answer)}`);
      // Behind the pong of the first ping is all that is told after hello.ack.
      await device.request('ping', {});
      device.received.skip();
      return device;
    },
    async actor() {
      actor ??= attach();
      const made = await actor;
      if (!made.agent.connected) {
        const answer = await made.agent.connect();
        if (answer.type !== 'hello.ack') throw broken('LNK14', `the agent's hello was answered with ${JSON.stringify(answer)}`);
      }
      return made;
    },
    agent({ door = 0, ...more } = {}) {
      away = true;
      const agent = testAgent({ dial: agentDial(door), patience, install_id: `conformance-${unique()}`, ...more });
      agents.push(agent);
      seen.agents.push(agent);
      return agent;
    },
    async channel() {
      const maker = await self.join('maker');
      const made = await maker.request('channel.create', { name: `Conformance ${unique()}` });
      maker.close();
      if (made.type !== 'channel.created' || made.payload.chat_id === undefined) throw need('channel.create');
      return { chat_id: made.payload.chat_id, thread_id: null };
    },
    async tidy() {
      const mine = await actor?.catch(() => undefined);
      mine?.tidy();
      if (mine?.agent.connected && !away) await overWith(mine.agent, devices);
      for (const device of devices) device.close();
      for (const agent of agents) agent.cut();
      devices = [];
      agents = [];
      if (away) {
        away = false;
        // Another installation took its place; the next one is a new one, too.
        mine?.agent.cut();
        actor = undefined;
      }
    },
    close() {
      for (const device of devices) device.cut();
      for (const agent of agents) agent.cut();
      void actor?.then(
        (one) => one.agent.cut(),
        () => {},
      );
    },
  };
  return self;
}
