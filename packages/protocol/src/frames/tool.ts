import { Type } from 'typebox';

const Index = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
/** `index` counts the tools of a turn; the three frames of one tool share it. */
export const ToolStart = Type.Object({
  index: Index,
  name: Type.String(),
  preview: Type.Optional(Type.String()),
  args: Type.Optional(Type.Unknown()),
});
export const ToolProgress = Type.Object({ index: Index, name: Type.String(), note: Type.Optional(Type.String()) });
export const ToolEnd = Type.Object({
  index: Index,
  name: Type.String(),
  ok: Type.Boolean(),
  /** Seconds. */
  duration: Type.Optional(Type.Number()),
  output_preview: Type.Optional(Type.String()),
});
