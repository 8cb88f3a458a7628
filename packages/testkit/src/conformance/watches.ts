import { bodyOf, connectionsOf, laneOf, partsOf, stable, withoutLinks } from '../checks/evidence.js';
import { type AnyFrame, classOf, showFrame } from '../frames.js';
import type { Received, TestDevice } from '../test-device.js';
import type { Seen } from './space.js';

/** What must hold of everything that is heard, whatever is being asked. */
export interface Watch {
  readonly rules: readonly string[];
  /** What was counted. */
  readonly what: string;
  look(seen: Seen): { readonly looked: number; readonly faults: readonly Fault[] };
}
export interface Fault {
  readonly rule: string;
  readonly text: string;
}

export const watches: readonly Watch[] = [
  {
    rules: ['ENV19'],
    what: 'frames, each beginning with {"v":1,',
    look: ({ frames, odd }) => ({ looked: frames, faults: odd.map((text) => ({ rule: 'ENV19', text })) }),
  },
  {
    rules: ['ENV1', 'HEL26', 'ERR2', 'TRN2', 'NOT2', 'MSG6'],
    what: 'frames as the frame table has them',
    look: ({ devices, frames }) => ({
      looked: frames,
      faults: devices.flatMap(({ faults, device_id }) =>
        faults
          .filter((fault) => !fault.startsWith('an answer to nothing'))
          .map((text) => ({ rule: shapeRule(text), text: `${device_id}: ${text}` })),
      ),
    }),
  },
  {
    rules: ['ENV21', 'ENV25', 'OUT6'],
    what: 'requests, each answered at most once and nobody else told its id',
    look: ({ devices }) => ({
      looked: devices.reduce((sum, { asked }) => sum + asked.length, 0),
      faults: devices.flatMap((device) => [...answersOf(device)]),
    }),
  },
  {
    rules: ['ERR1', 'ERR4', 'ERR5', 'ENV26'],
    what: 'errors, none of them internal',
    look({ devices }) {
      const errors = devices.flatMap((device) => device.frames('error'));
      return { looked: errors.length, faults: errors.flatMap((frame) => [...errorFaults(frame)]) };
    },
  },
  {
    rules: ['ORD1', 'ENV18', 'OUT3', 'OUT5', 'SYN2', 'SYN10'],
    what: 'cursors, rising and each once a connection',
    look: ({ devices }) => ({
      looked: devices.reduce((sum, device) => sum + device.frames(({ cursor }) => cursor !== undefined).length, 0),
      faults: devices.flatMap((device) => [...cursorFaults(device)]),
    }),
  },
  {
    rules: ['ORD4', 'ORD5', 'STR2', 'STR6'],
    what: 'updates, each within its message and longer than the one before',
    look: ({ devices }) => ({
      looked: devices.reduce((sum, device) => sum + device.frames('message.update').length, 0),
      faults: devices.flatMap((device) => [...updateFaults(device)]),
    }),
  },
  {
    rules: ['TRN3', 'TRN4'],
    what: 'busy and idle frames, one idle for each turn and nothing of it after',
    look: ({ devices }) => ({
      looked: devices.reduce((sum, device) => sum + device.frames(['agent.busy', 'agent.idle']).length, 0),
      faults: devices.flatMap((device) => [...turnFaults(device)]),
    }),
  },
  {
    rules: ['MSG10', 'MSG11', 'HIS6'],
    what: 'messages, the same wherever they come',
    look: ({ devices }) => messagesAlike(devices),
  },
  {
    rules: ['LNK5', 'LNK6', 'LNK7', 'LNK16', 'TRN5'],
    what: 'frames of the link, in order and acked',
    look: ({ agents }) => ({
      looked: agents.reduce((sum, { received }) => sum + received.all.length, 0),
      faults: agents.flatMap(({ faults }) => faults.map((text) => ({ rule: linkRule(text), text: `agent: ${text}` }))),
    }),
  },
];

/** Which rule a frame of the wrong shape breaks. */
function shapeRule(fault: string): string {
  const type = /^[a-z.]+/.exec(fault)?.[0];
  const of: Record<string, string> = {
    status: 'HEL26',
    error: 'ERR2',
    'agent.busy': 'TRN2',
    notification: 'NOT2',
    message: 'MSG6',
  };
  return (type !== undefined && Object.hasOwn(of, type) && of[type]) || 'ENV1';
}

const linkRule = (fault: string): string =>
  /epoch/.test(fault)
    ? 'LNK16'
    : /acked|^ack /.test(fault)
      ? 'LNK6'
      : /runs in its lane/.test(fault)
        ? 'TRN5'
        : /again/.test(fault)
          ? 'LNK7'
          : 'LNK5';

function* answersOf({ device_id, asked, faults }: TestDevice): Iterable<Fault> {
  for (const { id, type, answers } of asked)
    if (answers.length > (answers[0]?.type === 'media.pull.ack' && answers[1]?.type === 'media.pull.end' ? 2 : 1))
      yield { rule: 'ENV21', text: `${device_id}: ${type} ${id} was answered ${answers.length} times` };
  // Somebody else's `id`, or one that nobody gave.
  for (const fault of faults) if (fault.startsWith('an answer to nothing')) yield { rule: 'ENV25', text: `${device_id}: ${fault}` };
}

function* errorFaults(frame: AnyFrame): Iterable<Fault> {
  const { code, message, retry_after_ms } = frame.payload;
  const text = showFrame(frame);
  if (typeof code !== 'string' || typeof message !== 'string' || message === '') yield { rule: 'ERR1', text };
  if (code === 'rate_limited' && !(typeof retry_after_ms === 'number' && retry_after_ms >= 1)) yield { rule: 'ERR4', text };
  if (code === 'internal') yield { rule: 'ENV26', text };
  if (code === 'internal' && /\bat .+:\d+|\.[jt]s\b|Error:/.test(message ?? '')) yield { rule: 'ERR5', text };
}

function* cursorFaults(device: TestDevice): Iterable<Fault> {
  const { device_id } = device;
  for (const part of partsOf(device.received.all)) {
    let last = 0;
    for (const { frame, source, connection } of part) {
      if (frame.cursor === undefined) continue;
      const where = `${device_id}#${connection}: ${frame.type} ${frame.cursor}`;
      if (frame.cursor <= last) yield { rule: 'ORD1', text: `${where} after ${last}` };
      last = frame.cursor;
      const kind = classOf(frame.type);
      if (kind !== 'durable') yield { rule: kind === 'coalesced' ? 'OUT3' : 'OUT5', text: `${where} has a cursor` };
      if (source === 'live' && device.caps.cursors !== true)
        yield { rule: 'ENV18', text: `${where} came live to a device without the cap` };
      if (source === 'live' && frame.type === 'sync.done') yield { rule: 'ENV18', text: where };
    }
  }
  for (const [connection, frames] of connectionsOf(device.received.all)) {
    const live = new Set<number>();
    const asked = new Set<number | string>();
    const said = new Set<string>();
    let done = 0;
    for (const { frame, source, sync } of frames) {
      const where = `${device_id}#${connection}: ${frame.type} ${frame.cursor ?? frame.payload.message_id}`;
      if (frame.type === 'sync.done') done = frame.payload.cursor ?? 0;
      if (
        source === 'live' &&
        classOf(frame.type) === 'durable' &&
        frame.payload.message_id !== undefined &&
        frame.type !== 'read.receipt'
      ) {
        const body = bodyOf(frame);
        if (said.has(body)) yield { rule: 'ORD1', text: `${where} came live twice` };
        said.add(body);
      }
      if (source === 'live' && frame.cursor !== undefined && frame.cursor <= done)
        yield { rule: 'SYN10', text: `${where} came after sync.done ${done}` };
      if (frame.cursor === undefined) continue;
      // What `sync` gives a second time is what it is asked for a second time.
      if (source === 'sync' && sync !== undefined) asked.add(sync);
      if (source === 'sync' && live.has(frame.cursor) && asked.size === 1) yield { rule: 'SYN2', text: `${where} came live before` };
      if (source !== 'sync') live.add(frame.cursor);
    }
  }
}

function* updateFaults(device: TestDevice): Iterable<Fault> {
  for (const [connection, frames] of connectionsOf(device.received.all)) {
    const running = new Map<string, string>();
    const stopped = new Set<string>();
    for (const { frame } of frames) {
      const id = frame.payload.message_id;
      if (id === undefined) continue;
      const where = `${device.device_id}#${connection}: ${frame.type} of ${id}`;
      if (frame.type === 'message.start') running.set(id, running.get(id) ?? '');
      else if (frame.type === 'message.stop' || frame.type === 'message') stopped.add(id);
      if (frame.type !== 'message.update') continue;
      const before = running.get(id);
      const text = frame.payload.text ?? '';
      if (stopped.has(id)) yield { rule: 'STR6', text: `${where} after its stop` };
      else if (before === undefined) yield { rule: 'ORD5', text: `${where} before its start` };
      else if (text.length < before.length) yield { rule: 'ORD4', text: `${where} goes back from ${before.length} to ${text.length}` };
      else if (!text.startsWith(before)) yield { rule: 'STR2', text: `${where} is not the whole text so far` };
      running.set(id, text);
    }
  }
}

function* turnFaults(device: TestDevice): Iterable<Fault> {
  for (const [connection, frames] of connectionsOf(device.received.all)) {
    const state = new Map<string, 'busy' | 'idle'>();
    for (const { frame } of live(frames)) {
      const lane = laneOf(frame);
      const where = `${device.device_id}#${connection}: ${frame.type} in ${lane}`;
      if (frame.type === 'agent.busy') state.set(lane, 'busy');
      else if (frame.type === 'agent.idle') {
        if (state.get(lane) === 'idle') yield { rule: 'TRN3', text: `${where} again` };
        state.set(lane, 'idle');
      } else if (state.get(lane) === 'idle' && /^(message\.update|message\.delta|tool\.|message\.start)/.test(frame.type))
        yield { rule: 'TRN4', text: `${where} after agent.idle` };
      else if (state.get(lane) === 'idle' && frame.type === 'typing' && frame.payload.on === true)
        yield { rule: 'TRN4', text: `${where} after agent.idle` };
    }
  }
}
/** What came by itself: a replay tells an older story, and not all of it. */
const live = (frames: readonly Received[]): Received[] =>
  frames.filter(({ source, frame }) => source !== 'sync' && frame.type !== 'history');

/** What is the same of a message wherever it comes, and what a `message.stop` says of that. */
const ofMessage = ['role', 'text', 'media', 'ts', 'reasoning', 'reply_to', 'model', 'tokens', 'runtime', 'client_ref', 'steer'] as const;
const ofStop: ReadonlySet<string> = new Set(['text', 'media', 'reasoning', 'model', 'tokens', 'runtime']);
const named: ReadonlySet<string> = new Set(['role', 'text', 'media', 'ts']);

/**
 * Of every message, all copies that came: they are equal, but for the order of keys, which a store may change, and the links of files, which are made
 * for each device and time. What a file is was found out before its message was said, and stays.
 */
function messagesAlike(devices: readonly TestDevice[]) {
  const faults: Fault[] = [];
  const first = new Map<string, { readonly as: string; readonly value: string }>();
  let looked = 0;
  const compare = (as: string, message: Record<string, unknown>, tenant: string) => {
    const { message_id, late, interrupted } = message;
    // What was cut short is replaced by its late final.
    if (typeof message_id !== 'string' || late === true || interrupted === true) return;
    looked++;
    const isStop = 'final_text' in message;
    const told: Record<string, unknown> = withoutLinks({ ...message, ...(isStop ? { text: message.final_text } : {}) });
    for (const field of ofMessage) {
      if (isStop && !ofStop.has(field)) continue;
      const value = stable(told[field] ?? null);
      const key = `${tenant} ${message_id} ${field}`;
      const before = first.get(key);
      if (before === undefined) first.set(key, { as, value });
      else if (before.value !== value)
        faults.push({
          rule: named.has(field) ? 'MSG10' : 'HIS6',
          text: `${field} of ${message_id} is ${before.value} in ${before.as} and ${value} in ${as}`,
        });
    }
  };
  for (const device of devices)
    for (const { frame, source } of device.received.all) {
      if (frame.type === 'message' || frame.type === 'message.stop') {
        compare(`${frame.type} (${source})`, frame.payload, device.token);
        if (frame.chat_id === undefined || frame.thread_id === undefined)
          faults.push({ rule: 'MSG11', text: `${showFrame(frame)} does not name its lane` });
      } else if (frame.type === 'history') for (const row of frame.payload.messages ?? []) compare('history', row, device.token);
    }
  return { looked, faults };
}
