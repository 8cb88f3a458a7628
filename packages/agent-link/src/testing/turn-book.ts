import type { AgentUpFrame } from '@iris/protocol';

export interface SeenMessage {
  text: string;
  reasoning: string;
  stopped: boolean;
  /** Deltas fit only while nothing is missing: after a cut, not before the snapshot. */
  exact: boolean;
}

/** One turn as devices would have seen it. */
export interface SeenTurn {
  readonly turn_id: string;
  readonly chat_id: string;
  readonly thread_id: string | null;
  accepted: boolean;
  outcome?: string;
  error?: string;
  readonly messages: Map<string, SeenMessage>;
  readonly tools: Map<number, { name: string; ok?: boolean }>;
  readonly pickers: Map<string, boolean>;
  /** A link came up: the snapshot must come before anything that passes. */
  snapshotDue: boolean;
}

/** What the gateway knows of each turn, and what the agent may therefore say. */
export function turnBook(fault: (text: string) => void) {
  const turns = new Map<string, SeenTurn>();

  /** The turn that a frame may speak for. */
  const speaking = (frame: AgentUpFrame): SeenTurn | undefined => {
    if (frame.turn_id === undefined) return undefined;
    const turn = turns.get(frame.turn_id);
    if (!turn) fault(`${frame.type} of an unknown turn ${frame.turn_id}`);
    else if (!turn.accepted) fault(`${frame.type} before turn.accepted`);
    else if (turn.outcome !== undefined) fault(`${frame.type} after turn.end`);
    else return turn;
    return undefined;
  };
  const running = (turn: SeenTurn, message_id: string, type: string): SeenMessage | undefined => {
    const message = turn.messages.get(message_id);
    if (!message) fault(`${type} before message.start`);
    else if (message.stopped) fault(`${type} after message.stop`);
    else return message;
    return undefined;
  };

  function kept(frame: AgentUpFrame) {
    if (frame.type === 'turn.accepted') {
      const turn = turns.get(frame.turn_id ?? '');
      if (!turn) return fault(`turn.accepted of an unknown turn ${frame.turn_id}`);
      if (turn.accepted) return fault(`turn.accepted twice: ${frame.turn_id}`);
      turn.accepted = true;
      return;
    }
    const turn = speaking(frame);
    if (!turn) return;
    switch (frame.type) {
      case 'turn.snapshot':
        return snapshot(turn, frame.payload);
      case 'message.start':
        if (turn.messages.has(frame.payload.message_id)) fault(`message.start twice: ${frame.payload.message_id}`);
        turn.messages.set(frame.payload.message_id, { text: '', reasoning: '', stopped: false, exact: true });
        return;
      case 'message.stop': {
        const message = running(turn, frame.payload.message_id, frame.type);
        if (!message) return;
        if (message.exact && !frame.payload.final_text.startsWith(message.text)) fault('final_text is not what was streamed');
        message.stopped = true;
        message.text = frame.payload.final_text;
        message.reasoning = frame.payload.reasoning ?? '';
        return;
      }
      case 'tool.start':
        if (turn.tools.has(frame.payload.index)) fault(`tool.start twice: ${frame.payload.index}`);
        turn.tools.set(frame.payload.index, { name: frame.payload.name });
        return;
      case 'tool.end': {
        const tool = turn.tools.get(frame.payload.index);
        if (!tool || tool.ok !== undefined) fault(`tool.end of no working tool: ${frame.payload.index}`);
        turn.tools.set(frame.payload.index, { name: frame.payload.name, ok: frame.payload.ok });
        return;
      }
      case 'picker.choice':
      case 'picker.approval':
      case 'picker.clarify':
      case 'picker.confirm':
      case 'picker.model':
        turn.pickers.set(frame.payload.picker_id, true);
        return;
      case 'picker.closed':
        turn.pickers.set(frame.payload.picker_id, false);
        return;
      case 'turn.end':
        turn.outcome = frame.payload.outcome;
        if (frame.payload.error !== undefined) turn.error = frame.payload.error;
        // An interrupted one comes from a process that knows nothing more of it.
        if (turn.outcome === 'interrupted') return;
        for (const [id, message] of turn.messages) if (!message.stopped) fault(`turn.end while ${id} is open`);
        for (const [index, tool] of turn.tools) if (tool.ok === undefined) fault(`turn.end while tool ${index} is open`);
    }
  }

  function passed(frame: AgentUpFrame) {
    if (frame.turn_id === undefined || frame.type === 'agent.steer') return;
    const turn = speaking(frame);
    if (!turn) return;
    if (turn.snapshotDue) fault(`${frame.type} before turn.snapshot`);
    switch (frame.type) {
      case 'message.delta': {
        const message = running(turn, frame.payload.message_id, frame.type);
        if (!message) return;
        if (frame.payload.offset !== message.text.length) fault(`message.delta at ${frame.payload.offset}, not ${message.text.length}`);
        message.text += frame.payload.text;
        return;
      }
      case 'reasoning.delta': {
        const message = running(turn, frame.payload.message_id, frame.type);
        if (!message) return;
        if (frame.payload.offset !== message.reasoning.length) fault(`reasoning.delta at ${frame.payload.offset}`);
        message.reasoning += frame.payload.text;
        return;
      }
      case 'message.update': {
        const message = running(turn, frame.payload.message_id, frame.type);
        if (message) message.text = frame.payload.text;
        return;
      }
      case 'tool.progress':
        if (turn.tools.get(frame.payload.index)?.ok !== undefined) fault('tool.progress after tool.end');
    }
  }

  function snapshot(turn: SeenTurn, payload: Extract<AgentUpFrame, { type: 'turn.snapshot' }>['payload']) {
    turn.snapshotDue = false;
    const told = new Set(payload.messages.map((message) => message.message_id));
    for (const [id, message] of turn.messages) if (!message.stopped && !told.has(id)) fault(`the snapshot leaves out ${id}`);
    for (const { message_id, text, reasoning = '' } of payload.messages) {
      const message = running(turn, message_id, 'turn.snapshot');
      if (!message) continue;
      if (!text.startsWith(message.text)) fault('the snapshot goes back');
      message.text = text;
      message.reasoning = reasoning;
    }
    const working = new Set((payload.tools ?? []).map((tool) => tool.index));
    for (const [index, tool] of turn.tools)
      if ((tool.ok === undefined) !== working.has(index)) fault(`the snapshot is wrong about tool ${index}`);
    for (const index of working) if (!turn.tools.has(index)) fault(`the snapshot knows a tool ${index} that never started`);
    for (const picker_id of payload.pickers ?? [])
      if (!turn.pickers.has(picker_id)) fault(`the snapshot knows a picker ${picker_id} that never opened`);
  }

  return {
    turns,
    sent(turn_id: string, chat_id: string, thread_id: string | null): void {
      if (turns.has(turn_id)) return;
      turns.set(turn_id, {
        turn_id,
        chat_id,
        thread_id,
        accepted: false,
        messages: new Map(),
        tools: new Map(),
        pickers: new Map(),
        snapshotDue: false,
      });
    },
    clear: () => turns.clear(),
    resumed(): void {
      for (const turn of turns.values()) turn.snapshotDue = turn.accepted && turn.outcome === undefined;
    },
    kept,
    passed,
  };
}
