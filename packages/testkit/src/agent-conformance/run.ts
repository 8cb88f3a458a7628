import { agentChecks } from './checks.js';
import { conversation, Skipped, type Subject } from './subject.js';

export interface AgentResult {
  readonly rules: readonly string[];
  readonly title: string;
  readonly result: 'holds' | 'fails' | 'skipped';
  /** What was seen, or what was wrong. */
  readonly evidence: string;
}

/**
 * Ask an agent about every rule of the link that it must hold. A check fails also when the agent broke the contract meanwhile in any way
 * that the gateway notices (numbers, acks, frames out of place).
 * @param options.only titles or rules, by their beginning
 */
export async function runAgentConformance(
  subject: Subject,
  options: { only?: readonly string[]; onResult?: (result: AgentResult) => void } = {},
): Promise<AgentResult[]> {
  const say = conversation(subject);
  const results: AgentResult[] = [];
  const wanted = agentChecks.filter(
    ({ rules, title }) => options.only === undefined || options.only.some((one) => rules.includes(one) || title.startsWith(one)),
  );
  for (const { rules, title, run } of wanted) {
    const faults = subject.gateway.faults.length;
    let result: AgentResult;
    try {
      const evidence = await run(subject, say);
      const broken = subject.gateway.faults.slice(faults);
      result = {
        rules,
        title,
        result: broken.length === 0 ? 'holds' : 'fails',
        evidence: broken.length === 0 ? evidence : broken.slice(0, 3).join('; '),
      };
    } catch (error) {
      const broken = subject.gateway.faults.slice(faults, faults + 3);
      const evidence = [error instanceof Error ? error.message : String(error), ...broken].join('; ');
      result = { rules, title, result: error instanceof Skipped ? 'skipped' : 'fails', evidence };
    }
    results.push(result);
    options.onResult?.(result);
  }
  return results;
}
