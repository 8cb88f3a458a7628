import { type Static, Type } from 'typebox';
import { limits } from '../limits.js';
import { exceedsBytes } from '../text.js';
import { Id, Timestamp } from './shared.js';

export const PickerOption = Type.Object({
  value: Type.String(),
  label: Type.String(),
  is_current: Type.Optional(Type.Boolean()),
  style: Type.Optional(Type.String()),
});
const common = {
  picker_id: Id,
  title: Type.Optional(Type.String()),
  body: Type.Optional(Type.String()),
  expires_at: Type.Optional(Timestamp),
};
const choices = Type.Array(PickerOption, { minItems: 1, maxItems: limits.picker_choices });

export const PickerModel = Type.Object({
  ...common,
  current_model: Type.Optional(Type.String()),
  current_provider: Type.Optional(Type.String()),
  providers: Type.Array(
    Type.Object({ id: Type.String(), label: Type.String(), models: Type.Array(Type.Object({ id: Type.String(), label: Type.String() })) }),
    { minItems: 1, maxItems: limits.picker_choices },
  ),
});
export const PickerChoice = Type.Object({ ...common, choices });
export const PickerConfirm = Type.Object({ ...common, choices });
export const PickerApproval = Type.Object({ ...common, choices, command: Type.Optional(Type.String()) });
export const PickerClarify = Type.Object({
  ...common,
  question: Type.Optional(Type.String()),
  choices: Type.Optional(Type.Array(PickerOption, { maxItems: limits.picker_choices })),
  allow_text: Type.Optional(Type.Boolean()),
  multi: Type.Optional(Type.Boolean()),
});

export const PickerSelect = Type.Object({
  picker_id: Id,
  value: Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: limits.picker_choices })]),
});
export const refinePickerSelect = ({ value }: Static<typeof PickerSelect>): string | undefined =>
  exceedsBytes(typeof value === 'string' ? value : value.join(''), limits.picker_value_bytes)
    ? `value: must be at most ${limits.picker_value_bytes} bytes of UTF-8`
    : undefined;
export const PickerClosed = Type.Object({
  picker_id: Id,
  value: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
  expired: Type.Optional(Type.Boolean()),
  reason: Type.Optional(Type.String()),
});
