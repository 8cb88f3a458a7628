import type { FrameRow, FrameSide, PayloadRow } from '../frame-row.js';
import { frameTable, protocolVersion } from '../frame-table.js';
import { limits } from '../limits.js';

export type Json = { readonly [key: string]: unknown };

/** Who says it, as the documents and the fixture folders spell it. */
export const sideNames = { up: 'device-up', down: 'device-down', agent_up: 'agent-up', agent_down: 'agent-down' } as const satisfies Record<
  FrameSide,
  string
>;
export const sides = Object.keys(sideNames) as readonly FrameSide[];

/** Every type that a side says, with its row of that side. */
export const saidBy = (side: FrameSide): readonly { type: string; row: PayloadRow; frame: FrameRow }[] =>
  Object.entries(frameTable as Record<string, FrameRow>).flatMap(([type, frame]) => {
    const row = frame[side];
    return row === undefined ? [] : [{ type, row, frame }];
  });

/** The name of one frame in the documents, such as `device-up.message.send`. */
export const frameName = (side: FrameSide, type: string): string => `${sideNames[side]}.${type}`;

/** What every envelope has, said once. */
export const envelopeSchemas: Readonly<Record<'request_id' | 'id' | 'id_or_null' | 'count', Json>> = {
  request_id: {
    anyOf: [
      { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
      { type: 'string', minLength: 1, maxLength: limits.request_id_length },
      { type: 'null' },
    ],
  },
  id: { type: 'string', minLength: 1, maxLength: limits.id_length },
  id_or_null: { anyOf: [{ type: 'string', minLength: 1, maxLength: limits.id_length }, { type: 'null' }] },
  count: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
};

/**
 * One frame with its envelope, as JSON Schema (2020-12).
 * @param at where {@link envelopeSchemas} stand in the document, such as `#/$defs/`
 */
export function frameSchema(side: FrameSide, type: string, row: PayloadRow, at: string): Json {
  const shared = (name: keyof typeof envelopeSchemas): Json => ({ $ref: `${at}${name}` });
  const payload = plain(row.schema);
  const needsPayload = Array.isArray(payload.required) && payload.required.length > 0;
  const ofAgent = side === 'agent_up' || side === 'agent_down';
  const durable = (row as { durable?: boolean }).durable === true;
  const turn = (row as { turn?: string }).turn === 'required';
  const cursor = side === 'down' && (row as { class?: string }).class === 'durable';
  return {
    type: 'object',
    required: ['type', ...(needsPayload ? ['payload'] : []), ...(durable ? ['seq'] : []), ...(turn ? ['turn_id'] : [])],
    properties: {
      v: { const: protocolVersion },
      ...(ofAgent ? { seq: { ...envelopeSchemas.count, minimum: 1 }, ack: shared('count') } : {}),
      id: shared('request_id'),
      ...(cursor ? { cursor: shared('count') } : {}),
      type: { const: type },
      chat_id: shared('id_or_null'),
      thread_id: shared('id_or_null'),
      ...(ofAgent ? { turn_id: shared(turn ? 'id' : 'id_or_null') } : {}),
      payload,
    },
  };
}

/** Every frame of every side, as one JSON Schema document. */
export function jsonSchema(): Json {
  const definitions = sides.flatMap((side) =>
    saidBy(side).map(({ type, row }) => [frameName(side, type), frameSchema(side, type, row, '#/$defs/')] as const),
  );
  const unions = sides.map((side) => [sideNames[side], { oneOf: saidBy(side).map(({ type }) => ref(frameName(side, type))) }] as const);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: `urn:iris:frames:${protocolVersion}`,
    title: 'Frames of the Iris wire protocol and agent link',
    description: 'Written from packages/protocol/src/frame-table.ts. Fields that are not named are ignored.',
    anyOf: sides.map((side) => ref(sideNames[side])),
    $defs: Object.fromEntries([...Object.entries(envelopeSchemas), ...unions, ...definitions]),
  };
}

const ref = (name: string): Json => ({ $ref: `#/$defs/${name}` });
/** Without what the schema library keeps beside the schema. */
export const plain = (value: unknown): Json => JSON.parse(JSON.stringify(value)) as Json;
