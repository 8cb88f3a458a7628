import type { Clock } from './clock.js';
import type { UpBody } from './frame.js';
import type { Tool } from './types.js';

/** UTF-16 code units of a tool's output that are shown: its tail. */
const preview_units = 2_000;
/** UTF-16 code units of a tool's arguments as JSON, and how deep they may nest; the wire allows 32 levels in all. */
const args_units = 128 * 1024;
const args_depth = 24;

export interface Toolbox {
  begin(name: string, more?: { preview?: string; args?: unknown }): Tool;
  /** Tools at work, as `turn.snapshot` names them. */
  open(): { index: number; name: string; preview?: string }[];
  /** What still works ends without success. */
  closeAll(why: string): void;
}

export interface ToolPlace {
  readonly clock: Clock;
  keep(body: UpBody): void;
  pass(body: UpBody): boolean;
  /** The turn says nothing more: a tool that begins now is nobody's. */
  over(): boolean;
  /** A tool has begun or ended. */
  changed(): void;
}

/** The tools of one turn, counted from 1. */
export function createToolbox({ clock, keep, pass, over, changed }: ToolPlace): Toolbox {
  const working = new Map<number, { name: string; preview?: string; tool: Tool }>();
  let count = 0;

  return {
    begin(name, { preview, args } = {}) {
      const index = ++count;
      const began = clock.now();
      const tool: Tool = {
        index,
        progress(note) {
          if (working.has(index)) pass({ type: 'tool.progress', payload: { index, name, note } });
        },
        end({ ok = true, output_preview, duration = Math.round(clock.now() - began) / 1000 } = {}) {
          if (!working.delete(index)) return;
          keep({
            type: 'tool.end',
            payload: { index, name, ok, duration, ...(output_preview === undefined ? {} : { output_preview: tail(output_preview) }) },
          });
          changed();
        },
      };
      if (over()) return tool;
      working.set(index, { name, ...(preview === undefined ? {} : { preview }), tool });
      keep({
        type: 'tool.start',
        payload: { index, name, ...(preview === undefined ? {} : { preview }), ...shown(args) },
      });
      changed();
      return tool;
    },
    open: () => [...working].map(([index, { name, preview }]) => ({ index, name, ...(preview === undefined ? {} : { preview }) })),
    closeAll(why) {
      for (const { tool } of [...working.values()]) tool.end({ ok: false, output_preview: why });
    },
  };
}

/** Arguments as they can be carried: what is too large or too deep is shown by its beginning. */
function shown(args: unknown): { args?: unknown } {
  const text = JSON.stringify(args);
  if (text === undefined) return {};
  return text.length > args_units || deeper(args, args_depth) ? { args: { truncated: text.slice(0, preview_units) } } : { args };
}

const deeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' && value !== null && (levels === 0 || Object.values(value).some((inner) => deeper(inner, levels - 1)));

function tail(text: string): string {
  if (text.length <= preview_units) return text;
  const from = text.length - preview_units;
  const unit = text.charCodeAt(from);
  return text.slice(unit >= 0xdc00 && unit < 0xe000 ? from + 1 : from);
}
