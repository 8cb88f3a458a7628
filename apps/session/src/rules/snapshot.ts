import { type DownFrame, encode, laneKey, type MessageId } from '@iris/protocol';
import type { PickerRow } from '@iris/store';
import type { TextState, TurnState } from '../agent/room.js';
import { laneFrame, liveReasoningKey, liveTextKey } from './frames.js';

/** Bytes of texts so far that a joining device is told; what is beyond comes with the message's next update. */
const textsMax_bytes = 1024 * 1024;

/** Of what {@link snapshotFrames} says of running messages: the keys and revs of the live frames that said the same. */
export function snapshotRevs(turns: readonly TurnState[], textOf: (message_id: MessageId) => TextState | undefined): [string, number][] {
  const revs: [string, number][] = [];
  for (const turn of turns)
    for (const { message_id } of turn.messages) {
      const { text_rev, reasoning_rev } = textOf(message_id) ?? {};
      if (text_rev !== undefined) revs.push([liveTextKey(message_id), text_rev]);
      if (reasoning_rev !== undefined) revs.push([liveReasoningKey(message_id), reasoning_rev]);
    }
  return revs;
}

/**
 * What a joining device is told of what is going on: busy lanes, open pickers, and running messages with their text so far.
 * @param options.reasoning with cap `reasoning`: what was thought so far, too
 */
export function snapshotFrames(
  turns: readonly TurnState[],
  textOf: (message_id: MessageId) => TextState | undefined,
  pickers: readonly PickerRow[],
  options: { readonly reasoning: boolean },
): DownFrame[] {
  const busy = new Map<string, DownFrame>();
  for (const turn of turns) if (turn.reason !== null) busy.set(laneKey(turn), laneFrame('agent.busy', turn, { reason: turn.reason }));
  const frames: DownFrame[] = [...busy.values()];
  for (const picker of pickers) frames.push(laneFrame(picker.type as 'picker.choice', picker, picker.payload as never));
  let bytes = 0;
  for (const turn of turns)
    for (const { message_id, role } of turn.messages) {
      frames.push(laneFrame('message.start', turn, { message_id, role }));
      const { text = '', reasoning = '' } = textOf(message_id) ?? {};
      const update = laneFrame('message.update', turn, { message_id, text });
      bytes += encode(update).length;
      if (bytes <= textsMax_bytes) frames.push(update);
      if (!options.reasoning || reasoning === '') continue;
      const thought = laneFrame('reasoning.delta', turn, { message_id, offset: 0, text: reasoning });
      bytes += encode(thought).length;
      if (bytes <= textsMax_bytes) frames.push(thought);
    }
  return frames;
}
