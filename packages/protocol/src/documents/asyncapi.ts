import type { AgentUpRow, DownRow, FrameRow, FrameSide, PayloadRow, UpRow } from '../frame-row.js';
import { envelopeSchemas, frameName, frameSchema, type Json, plain, saidBy, sideNames, sides } from './json-schema.js';
import type { Rule } from './rules.js';

const channelOf = (side: FrameSide): 'devices' | 'agents' => (side === 'up' || side === 'down' ? 'devices' : 'agents');
const comesIn = (side: FrameSide): boolean => side === 'up' || side === 'agent_up';

/**
 * The protocol as an AsyncAPI 3.0 document, seen from the gateway: it receives what comes up and sends what goes down.
 * @param fixtures one example frame by name, such as `device-up.message.send`
 * @param rules of SPEC.md: each message tells its own
 */
export function asyncApi({ fixtures, rules }: { fixtures: ReadonlyMap<string, Json>; rules: readonly Rule[] }): Json {
  const ruleTexts = new Map(rules.map((rule) => [rule.id, rule]));
  const said = sides.flatMap((side) => saidBy(side).map((one) => ({ side, name: frameName(side, one.type), ...one })));
  const messages = said.map(({ side, name, type, row, frame }) => {
    const example = fixtures.get(name);
    return [
      name,
      {
        name: type,
        title: `${type} (${sideNames[side]})`,
        description: frame.rules.map((id) => describe(ruleTexts.get(id), id)).join('\n'),
        contentType: 'application/json',
        payload: frameSchema(side, type, row, '#/components/schemas/'),
        ...(example === undefined ? {} : { examples: [{ name: 'fixture', payload: example }] }),
        'x-iris': facts(side, row, frame),
      },
    ] as const;
  });
  const operations = said.map(({ side, name, row }) => {
    const channel = { $ref: `#/channels/${channelOf(side)}` };
    const answer = side === 'up' ? (row as UpRow).answer : null;
    return [
      name,
      {
        action: comesIn(side) ? 'receive' : 'send',
        channel,
        messages: [inChannel(side, name)],
        ...(answer === null
          ? {}
          : {
              reply: { channel, messages: [inChannel('down', frameName('down', answer)), inChannel('down', frameName('down', 'error'))] },
            }),
      },
    ] as const;
  });
  const channel = (address: string, title: string, mine: 'devices' | 'agents') => ({
    address,
    title,
    messages: Object.fromEntries(
      said.filter(({ side }) => channelOf(side) === mine).map(({ name }) => [name, { $ref: `#/components/messages/${name}` }]),
    ),
    bindings: { ws: { method: 'GET' } },
  });
  return plain({
    asyncapi: '3.0.0',
    info: {
      title: 'Iris Gateway',
      version: '1.0.0',
      description:
        'The wire protocol of devices and the agent link, written from packages/protocol. Rules are those of packages/protocol/SPEC.md.',
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    defaultContentType: 'application/json',
    channels: {
      devices: channel('/ws', 'Devices', 'devices'),
      agents: channel('/agent', 'Agents', 'agents'),
    },
    operations: Object.fromEntries(operations),
    components: { messages: Object.fromEntries(messages), schemas: envelopeSchemas },
  });
}

const inChannel = (side: FrameSide, name: string): Json => ({ $ref: `#/channels/${channelOf(side)}/messages/${name}` });
const describe = (rule: Rule | undefined, id: string): string =>
  rule === undefined ? `- ${id}` : `- ${rule.id}: ${rule.text}${rule.later ? ' (not built yet)' : ''}`;

/** What the table says of the frame beside its schema. */
function facts(side: FrameSide, row: PayloadRow, frame: FrameRow): Json {
  if (side === 'up') {
    const { scope, answered_by, answer, deadline_ms, changes } = row as UpRow;
    return { scope, answered_by, answer, deadline_ms, changes, rules: frame.rules };
  }
  if (side === 'down') {
    const down = row as DownRow;
    return { class: down.class, key: down.key ?? null, push: down.push ?? null, rules: frame.rules };
  }
  const { durable } = row as AgentUpRow;
  return side === 'agent_up' ? { durable, turn: (row as AgentUpRow).turn, rules: frame.rules } : { durable, rules: frame.rules };
}
