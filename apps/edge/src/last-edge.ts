import { type Bus, NoResponders, type Subscription, subjects } from '@iris/bus';

const answer_ms = 300;
const tries = 3;
const nothing = new Uint8Array();

/** This edge takes devices, until `end`. */
export const takesDevices = (bus: Bus): Subscription => bus.serve(subjects.edges, () => nothing);

/**
 * Whether no edge takes devices any more, asked by one that has ended to. A broker that cannot be asked says nothing of the others: devices are
 * told only what is known, since apps show it.
 */
export async function wasLast(bus: Bus): Promise<boolean> {
  for (let n = 0; n < tries; n++) {
    try {
      await bus.request(subjects.edges, nothing, { timeout_ms: answer_ms });
      return false;
    } catch (error) {
      if (error instanceof NoResponders) return true;
      // One that went at the same moment may have had the question, and answers no more.
    }
  }
  return false;
}
