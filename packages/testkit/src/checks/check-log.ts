import { type Evidence, isFinal, type Logged, laneOf, type Violation } from './evidence.js';

/** What must hold of the order itself, whoever saw it. */
export function checkLog(evidence: Evidence, log: readonly Logged[]): Violation[] {
  return [...rising(log), ...onceEach(log), ...turnsEnd(log), ...historyAgrees(evidence, log)];
}

function* rising(log: readonly Logged[]): Iterable<Violation> {
  let last = 0;
  for (const { cursor, frame } of log) {
    if (!Number.isSafeInteger(cursor) || cursor < 1) yield { oracle: 'O4', message: `cursor ${cursor} of ${frame.type}` };
    if (cursor <= last) yield { oracle: 'O4', message: `cursor ${cursor} (${frame.type}) was given after ${last}` };
    last = Math.max(last, cursor);
  }
}

/** Per message id, one frame of each kind; only an interrupted message may come once more, marked `late`. */
function* onceEach(log: readonly Logged[]): Iterable<Violation> {
  const seen = new Map<string, number>();
  for (const { cursor, frame } of log) {
    const { message_id, picker_id, late } = frame.payload;
    const what = message_id ?? (frame.type.startsWith('picker.') ? picker_id : undefined);
    if (what === undefined || frame.type === 'read.receipt') continue;
    const kind = frame.type === 'message.stop' || (frame.type === 'message' && late !== true) ? 'final' : late ? 'late' : frame.type;
    const key = `${kind} ${what}`;
    const first = seen.get(key);
    if (first !== undefined) yield { oracle: 'O2', message: `${frame.type} of ${what} at ${first} and again at ${cursor}` };
    else seen.set(key, cursor);
  }
}

/** Each `agent.busy` is closed by one `agent.idle`, and between an idle and the next busy nothing runs. */
function* turnsEnd(log: readonly Logged[]): Iterable<Violation> {
  const state = new Map<string, 'busy' | 'idle'>();
  for (const { cursor, frame } of log) {
    const lane = laneOf(frame);
    const was = state.get(lane);
    if (frame.type === 'agent.busy') state.set(lane, 'busy');
    else if (frame.type === 'agent.idle') {
      if (was !== 'busy') yield { oracle: 'O10', message: `agent.idle at ${cursor} in ${lane} with nothing busy` };
      state.set(lane, 'idle');
    } else if (/^(tool\.|commentary$|message\.(start|stop)$)/.test(frame.type) && was !== 'busy')
      yield { oracle: 'O10', message: `${frame.type} at ${cursor} in ${lane} while nothing is busy` };
  }
  for (const [lane, last] of state) if (last === 'busy') yield { oracle: 'O10', message: `${lane} stays busy` };
}

/** History holds every final once, in the order of its cursors, with the text that was last said, and nothing that was deleted. */
function* historyAgrees({ histories, devices }: Evidence, log: readonly Logged[]): Iterable<Violation> {
  const deleted = new Set<string>();
  const finals = new Map<string, Map<string, { cursor: number; text: unknown }>>();
  for (const { cursor, frame } of log) {
    if (frame.type === 'message.deleted') for (const id of frame.payload.message_ids ?? []) deleted.add(id);
    if (!isFinal(frame)) continue;
    const id = frame.payload.message_id!;
    if (deleted.has(id)) yield { oracle: 'O11', message: `${frame.type} of ${id} at ${cursor}, after it was deleted` };
    const lane = finals.get(laneOf(frame)) ?? new Map<string, { cursor: number; text: unknown }>();
    finals.set(laneOf(frame), lane);
    const text = frame.payload.final_text ?? frame.payload.text;
    // A late final replaces the text, not the place.
    lane.set(id, { cursor: lane.get(id)?.cursor ?? cursor, text });
  }
  for (const [lane, history] of histories) {
    const ids = history.map(({ message_id }) => message_id!);
    const twice = ids.find((id, i) => ids.indexOf(id) !== i);
    if (twice !== undefined) yield { oracle: 'O2', message: `history of ${lane} has ${twice} twice` };
    const rows = new Map(history.map((row) => [row.message_id!, row]));
    const said = finals.get(lane) ?? new Map<string, { cursor: number; text: unknown }>();
    for (const [id, { cursor, text }] of said) {
      const row = rows.get(id);
      if (row === undefined && !deleted.has(id)) yield { oracle: 'O1', message: `history of ${lane} lacks ${id}, said at ${cursor}` };
      if (row && row.text !== text)
        yield { oracle: 'O2', message: `${id} says ${show(text)} at ${cursor} and ${show(row.text)} in history` };
    }
    for (const id of ids) if (deleted.has(id)) yield { oracle: 'O11', message: `history of ${lane} has ${id}, which was deleted` };
    const placed = ids.flatMap((id) => said.get(id)?.cursor ?? []);
    const wrong = placed.findIndex((cursor, i) => i > 0 && cursor <= placed[i - 1]!);
    if (wrong > 0) yield { oracle: 'O3', message: `history of ${lane} has cursor ${placed[wrong]} after ${placed[wrong - 1]}` };
    yield* oneMessagePerSend(lane, history);
  }
  for (const device of devices)
    for (const { type, payload, answers } of device.asked) {
      const echo = answers.find((answer) => answer.type === 'message');
      if (type !== 'message.send' || echo === undefined) continue;
      const row = histories.get(laneOf(echo))?.find(({ message_id }) => message_id === echo.payload.message_id);
      const id = echo.payload.message_id!;
      if (row === undefined && !deleted.has(id) && histories.has(laneOf(echo)))
        yield { oracle: 'O1', message: `${device.device_id} was told that ${id} (${show(payload.text)}) is stored, and history lacks it` };
    }
}

/** Tests give each send its own text, so the same text twice is the same send twice. */
function* oneMessagePerSend(
  lane: string,
  history: Evidence['histories'] extends ReadonlyMap<string, infer H> ? H : never,
): Iterable<Violation> {
  const seen = new Map<string, string>();
  for (const { message_id, role, text } of history) {
    if (role === 'system' || text === undefined || text === '') continue;
    const key = `${role} ${text}`;
    const first = seen.get(key);
    if (first !== undefined) yield { oracle: 'O2', message: `history of ${lane} has ${show(text)} as ${first} and as ${message_id}` };
    seen.set(key, message_id!);
  }
}

const show = (text: unknown): string => JSON.stringify(text)?.slice(0, 60) ?? 'nothing';
