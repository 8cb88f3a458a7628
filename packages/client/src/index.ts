export * from './client.js';
export * from './connection.js';
export * from './socket.js';
export {
  type Channel,
  type ClientState,
  type CommandEntry,
  emptyLane,
  emptyState,
  type FinishedMessage,
  type Item,
  keyOf,
  type LaneView,
  type Picker,
  type PickerType,
} from './state.js';
export type { FileLike } from './transfers.js';
