import { unsupported } from '@iris/protocol';

interface Offer {
  readonly choices?: readonly { readonly value: string }[];
  readonly providers?: readonly { readonly id: string; readonly models: readonly { readonly id: string }[] }[];
  readonly multi?: boolean;
}
type Value = string | readonly string[];

/**
 * The answer to a picker, if it is one that the picker allows.
 * @param type the picker's frame type
 * @throws RequestError `unsupported`
 */
export function pickerAnswer(type: string, payload: Record<string, unknown>, value: Value): Value {
  const offer = payload as Offer;
  if (type === 'picker.clarify') {
    // Any text answers a question; several only where several are asked for.
    if (typeof value !== 'string' && offer.multi !== true) throw unsupported('value: one answer only');
    if (value.length === 0) throw unsupported('value: must not be empty');
    return value;
  }
  if (typeof value !== 'string') throw unsupported('value: one answer only');
  const offered =
    type === 'picker.model'
      ? (offer.providers ?? []).some(({ id, models }) => models.some((model) => `${id}/${model.id}` === value))
      : (offer.choices ?? []).some((choice) => choice.value === value);
  if (!offered) throw unsupported('value: not offered');
  return value;
}

/** Whether the lane's next plain message answers it. */
export const takesText = (type: string, payload: Record<string, unknown>): boolean =>
  type === 'picker.clarify' && payload.allow_text === true;
