import type { Ask, PickerOption } from '@iris/agent-link';

/** A question of Hermes, and what its answer is to Hermes: a text that the person would have typed. */
export interface Asked {
  ask(ask: Ask, timeout_ms: number, signal: AbortSignal): Promise<string | null>;
}

const approvals: readonly (PickerOption & { readonly command: string })[] = [
  { value: 'once', label: 'Allow once', style: 'primary', command: '/approve' },
  { value: 'session', label: 'Allow for this session', command: '/approve session' },
  { value: 'always', label: 'Always allow', command: '/approve always' },
  { value: 'deny', label: 'Deny', style: 'danger', command: '/deny' },
];

/**
 * Hermes 0.19 asks over a relay in words ("Reply `/approve` …", a numbered list). The same words as a picker: undefined when they are no
 * question.
 */
export function askedIn(text: string): Asked | undefined {
  return approvalIn(text) ?? clarifyIn(text);
}

function approvalIn(text: string): Asked | undefined {
  if (!/`\/approve`/.test(text) || !/`\/deny`/.test(text)) return undefined;
  const command = /```\w*\n([\s\S]*?)\n```/.exec(text)?.[1];
  const body = /^Reason: (.+)$/m.exec(text)?.[1];
  const offered = approvals.filter(({ command: words }) => text.includes(`\`${words}\``));
  return {
    async ask(ask, timeout_ms, signal) {
      const { value } = await ask.approval({
        title: 'May this be done?',
        ...(body === undefined ? {} : { body }),
        ...(command === undefined ? {} : { command }),
        choices: offered.map(({ command: _, ...choice }) => choice),
        timeout_ms,
        signal,
      });
      return offered.find((one) => one.value === value)?.command ?? null;
    },
  };
}

function clarifyIn(text: string): Asked | undefined {
  const [first = '', ...rest] = text.split('\n');
  const question = /^❓ (.+)$/.exec(first.trim())?.[1];
  if (question === undefined) return undefined;
  const choices = rest.flatMap((line) => {
    const label = /^\s*\d+\. (.+)$/.exec(line)?.[1]?.trim();
    return label === undefined ? [] : [{ value: label, label }];
  });
  return {
    async ask(ask, timeout_ms, signal) {
      const more = choices.length === 0 ? {} : { choices };
      return (await ask.clarify({ question, ...more, allow_text: true, timeout_ms, signal })).value;
    },
  };
}
