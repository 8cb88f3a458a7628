import { checkDevice } from './check-device.js';
import { checkLog } from './check-log.js';
import { checkLastPushed, checkPushes } from './check-pushes.js';
import { type Evidence, logOf, type Violation } from './evidence.js';

export { checkPushes } from './check-pushes.js';
export { type Evidence, isFinal, type Logged, laneOf, type Oracle, type PushEvidence, type Violation } from './evidence.js';

/** The checks O1–O6 and O10–O12 over everything that was seen. Empty when all hold. */
export function check(evidence: Evidence): Violation[] {
  const log = logOf(evidence);
  return [
    ...checkLog(evidence, log),
    ...evidence.devices.flatMap((device) => checkDevice(device, evidence, log)),
    ...evidence.devices.flatMap((device) => [...checkLastPushed(device)]),
    ...(evidence.pushes ?? []).flatMap((push) => [...checkPushes(push)]),
    ...evidence.agents.flatMap(({ faults }) => faults.map((fault) => ({ oracle: 'O2', message: `agent: ${fault}` }) as const)),
  ];
}

/** Throws with every violation, one a line. */
export function expectChecks(evidence: Evidence, note = ''): void {
  const violations = check(evidence);
  if (violations.length === 0) return;
  const lines = violations.slice(0, 25).map(({ oracle, message }) => `${oracle}: ${message}`);
  throw new Error(`${violations.length} violations${note ? ` (${note})` : ''}\n${lines.join('\n')}`);
}
