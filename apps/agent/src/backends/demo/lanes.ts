/** What the demo remembers of one lane. */
export interface DemoLane {
  messages: number;
  model: string;
  began_at: number;
  session: string | undefined;
}

const lanes_max = 1_000;

/** A short memory: the lanes that spoke last, no more than a thousand. */
export function demoLanes(now: () => number): { of(lane: { chat_id: string; thread_id: string | null }): DemoLane } {
  const lanes = new Map<string, DemoLane>();
  return {
    of({ chat_id, thread_id }) {
      const key = `${chat_id}\n${thread_id ?? ''}`;
      const lane = lanes.get(key) ?? { messages: 0, model: 'demo/scripted', began_at: now(), session: undefined };
      lanes.delete(key);
      lanes.set(key, lane);
      for (const oldest of lanes.keys()) {
        if (lanes.size <= lanes_max) break;
        lanes.delete(oldest);
      }
      return lane;
    },
  };
}
