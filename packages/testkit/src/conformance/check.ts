import { type AnyFrame, classOf, showFrame } from '../frames.js';
import type { TestAgent, TestAgentOptions } from '../test-agent.js';
import type { Scope, TestDevice } from '../test-device.js';
import type { Dial } from '../wire.js';
import type { Actor } from './actor.js';
import type { Admin, Target } from './target.js';

/** One small question to a gateway, by what its rules promise. */
export interface Check {
  /** Ids of the rules that hold when it comes to its end. */
  readonly rules: readonly string[];
  readonly needs?: readonly Need[];
  /** Seconds that the rule itself makes it last: then it runs beside the others, in places of its own. */
  readonly seconds?: number;
  /** It floods the gateway, or uses up what others need: then nothing else is asked meanwhile. */
  readonly alone?: true;
  /** Only when asked for: the gateway remembers it for a while. */
  readonly slow?: true;
  /** Resolves with what was seen. @throws what {@link broken}, {@link must} and {@link need} throw, or anything else that went wrong */
  run(ctx: Ctx): Promise<string>;
}

/** What a check cannot do without. `socket`: the gateway's own WebSocket server, as a browser reaches it; `doors`: two edges at least. */
export type Need = 'agent' | 'admin' | 'socket' | 'doors';

export interface JoinOptions {
  /** Which of the target's doors; counted from 0, and around. */
  readonly door?: number;
  readonly caps?: Record<string, unknown>;
  readonly token?: string;
  readonly device_name?: string;
}

/** One tenant, as a check sees it. */
export interface Space {
  readonly device_token: string;
  readonly agent_token: string | undefined;
  /** Where conversations of this run are held. */
  readonly lane: { readonly chat_id: string; readonly thread_id: string | null };
  /** How a device reaches an edge. */
  door(index: number): Dial;
  /** How the tenant's agent reaches one. @throws what {@link need} throws where no agent can */
  agentDoor(index: number): Dial;
  /** A device that has not dialled yet. The same label is the same device, in every check. */
  device(label: string, how?: JoinOptions): TestDevice;
  /** …that is online: what came of its hello is behind it. */
  join(label: string, how?: JoinOptions): Promise<TestDevice>;
  /** A device that the gateway has never seen. */
  newcomer(how?: JoinOptions): TestDevice;
  /** The agent of this tenant, attached. */
  actor(): Promise<Actor>;
  /** An agent of the check's own in the actor's place, until the check ends. It has not dialled yet. */
  agent(options?: Partial<TestAgentOptions> & { door?: number }): TestAgent;
  /** A channel of the check's own, when the gateway makes channels. */
  channel(): Promise<Scope & { chat_id: string }>;
}

export interface Ctx extends Space {
  readonly target: Target;
  /** Set when a check says that it needs it. */
  readonly admin: Admin;
  /** A text that nobody has said before. */
  text(what?: string): string;
  /** A tenant of the check's own. */
  own(quotas?: Readonly<Record<string, number>>): Promise<Space & { readonly tenant_id: string }>;
  /** Nothing is awaited for so long. */
  quiet(ms: number): Promise<void>;
}

/** A rule does not hold. */
export interface Broken extends Error {
  readonly rule: string;
}
export const broken = (rule: string, message: string): Broken => Object.assign(new Error(message), { rule });
export const ruleOf = (error: unknown): string | undefined => (error as Partial<Broken>).rule;

/** The check cannot be made here. */
export interface Needed extends Error {
  readonly needed: string;
}
export const need = (what: string): Needed => Object.assign(new Error(`needs ${what}`), { needed: what });
export const neededBy = (error: unknown): string | undefined => (error as Partial<Needed>).needed;

export function must(rule: string, holds: boolean, message: string): asserts holds {
  if (!holds) throw broken(rule, message);
}

/** Whether `value` has everything that `part` has: objects by their named fields, lists whole, `undefined` for what must not be there. */
export function has(value: unknown, part: unknown): boolean {
  if (typeof part === 'function') return (part as (value: unknown) => boolean)(value);
  if (Array.isArray(part)) return Array.isArray(value) && value.length === part.length && part.every((one, i) => has(value[i], one));
  if (typeof part !== 'object' || part === null) return Object.is(value, part);
  if (typeof value !== 'object' || value === null) return false;
  const fields = new Map(Object.entries(value));
  return Object.entries(part).every(([name, inner]) => has(fields.get(name), inner));
}

/** The frame must have everything that `part` has. */
export function like(rule: string, frame: AnyFrame | undefined, part: Record<string, unknown>): AnyFrame {
  const wanted = () => JSON.stringify(part, (_, inner: unknown) => (typeof inner === 'function' ? '…' : inner));
  if (frame === undefined) throw broken(rule, `no frame came; wanted ${wanted()}`);
  if (!has(frame, part)) throw broken(rule, `${showFrame(frame)} came; wanted ${wanted()}`);
  return frame;
}

/** `error` with this code, whose message begins with the field's name when one is given. */
export function refused(rule: string, frame: AnyFrame | undefined, code: string, field?: string): AnyFrame {
  const named = (message: unknown) => field === undefined || (typeof message === 'string' && message.startsWith(field));
  return like(rule, frame, { type: 'error', payload: { code, message: named } });
}

/**
 * What answers a raw text: requests keep their order, so when the one behind it is answered it has been answered. What turns of the lane say
 * meanwhile is left out.
 */
export async function comesOf(device: TestDevice, lane: Scope, raw: string | Uint8Array): Promise<AnyFrame[]> {
  device.received.skip();
  device.raw(raw);
  const behind = await device.request('history', { limit: 1 }, lane);
  return device.received
    .rest()
    .map(({ frame }) => frame)
    .filter((frame) => frame !== behind && (frame.id !== undefined || classOf(frame.type) === 'response'));
}

/**
 * The watermark that a device is told when it comes again. An acknowledgement is written within a second, or a little later on a machine
 * that does much else: the device comes back up to five times until it is told `cursor` or more.
 */
export async function watermarkOf(ctx: Ctx, device: TestDevice, cursor: number): Promise<number> {
  let mark = -1;
  for (let tries = 0; tries < 5 && mark < cursor; tries++) {
    await ctx.quiet(1_300);
    device.cut();
    mark = (await device.join()).payload.sync_cursor!;
  }
  return mark;
}

export const shown = (frames: readonly AnyFrame[]): string => frames.map(showFrame).join(' · ') || '(nothing)';
