import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { firstFault } from './first-fault.js';
import type { FrameSide, PayloadRow } from './frame-row.js';
import { rowOf } from './frame-table.js';

/** Compiled once per schema, when its first frame comes: a check then costs tens of nanoseconds. */
const compiled = new WeakMap<TSchema, Validator>();
export function validatorOf(schema: TSchema): Validator {
  let validator = compiled.get(schema);
  if (validator === undefined) {
    validator = Compile(schema);
    compiled.set(schema, validator);
  }
  return validator;
}

/**
 * What is wrong with the payload of a frame, beginning with the field's name; undefined when nothing is, or when the type is not
 * said by that side. Fields that the schema does not know are never wrong.
 */
export function payloadFault(
  side: FrameSide,
  type: string,
  payload: unknown,
  lane: { chat_id?: string | undefined } = {},
): string | undefined {
  const row = rowOf(type)?.[side];
  return row && rowFault(row, validatorOf(row.schema), payload, lane);
}

export function rowFault(
  row: PayloadRow,
  validator: Validator,
  payload: unknown,
  lane: { chat_id?: string | undefined },
): string | undefined {
  if (!validator.Check(payload)) return firstFault(row.schema, payload) ?? 'payload: does not fit';
  return row.refine?.(payload, lane);
}
