import type { Rule } from '@iris/protocol/documents';
import { type Check, type Ctx, type Need, need, neededBy, ruleOf } from './check.js';
import { outside } from './outside.js';
import { checks as allChecks } from './rules/index.js';
import { type OpenSpace, openSpace, type Seen } from './space.js';
import type { Target } from './target.js';
import { watches } from './watches.js';

/** `later`: the rule is law but not built yet, and does not hold. `needs`: what the run was not given. `outside`: no client can see it. */
export type Outcome = 'pass' | 'fail' | 'later' | 'needs' | 'outside' | 'unchecked';
export interface Result {
  readonly rule: string;
  readonly outcome: Outcome;
  /** The rule is marked `— later` in SPEC.md. */
  readonly later: boolean;
  readonly evidence: string;
}

export interface RunOptions {
  readonly rules: readonly Rule[];
  /** Beginnings of rule ids: only checks of these, and what is watched all the time. */
  readonly only?: readonly string[];
  /** Leave out rules that make a check last longer. Default 15. */
  readonly max_seconds?: number;
  /** How many checks at once; more than one only where tenants can be made. Default 4. */
  readonly at_once?: number;
  /** Told after each check: its rules, and milliseconds. */
  readonly onCheck?: (rules: readonly string[], ms: number) => void;
}

type Verdict =
  | { readonly kind: 'pass'; readonly evidence: string }
  | { readonly kind: 'fail'; readonly rule?: string; readonly evidence: string }
  | { readonly kind: 'needs'; readonly what: string };

/** Ask a gateway everything. The results are in the order of the rules. */
export async function runConformance(target: Target, options: RunOptions): Promise<Result[]> {
  const { rules, only, max_seconds = 15, at_once = 4, onCheck } = options;
  const wanted = ({ rules }: Check) => only === undefined || rules.some((rule) => only.some((start) => rule.startsWith(start)));
  const checks = allChecks.filter(wanted);
  const seen: Seen = { devices: [], agents: [], frames: 0, odd: [] };
  const opened: OpenSpace[] = [];
  const found = new Map<string, Verdict[]>();
  const note = (rule: string, verdict: Verdict) => void found.set(rule, [...(found.get(rule) ?? []), verdict]);
  const play = async (check: Check, shared: OpenSpace) => {
    const begun = target.patience.now();
    const verdict = await verdictOf(check, target, shared, opened, seen, max_seconds);
    onCheck?.(check.rules, target.patience.now() - begun);
    for (const rule of check.rules) {
      if (verdict.kind !== 'fail' || verdict.rule === undefined || verdict.rule === rule) note(rule, verdict);
      else note(rule, { kind: 'needs', what: `${verdict.rule} to hold` });
    }
    // A check may find more than it looked for.
    if (verdict.kind === 'fail' && verdict.rule !== undefined && !check.rules.includes(verdict.rule)) note(verdict.rule, verdict);
  };

  try {
    const first = openSpace(target, target, seen);
    opened.push(first);
    const slow = checks.filter(({ seconds }) => seconds !== undefined).map((check) => play(check, first));
    const spaces = [first];
    while (target.admin !== undefined && spaces.length < at_once) spaces.push(openSpace(target, await target.admin.tenant(), seen));
    opened.push(...spaces.slice(1));
    await Promise.all(spaces.map((space) => prepare(target, space)));
    const queue = checks.filter(({ seconds, alone }) => seconds === undefined && alone === undefined);
    const work = async (space: OpenSpace) => {
      for (let check = queue.shift(); check !== undefined; check = queue.shift()) {
        await play(check, space);
        await space.tidy();
      }
    };
    await Promise.all(spaces.map(work));
    await Promise.all(slow);
    for (const check of checks.filter(({ alone }) => alone === true)) {
      await play(check, first);
      await first.tidy();
    }
    for (const watch of watches) {
      const { looked, faults } = watch.look(seen);
      for (const rule of watch.rules) {
        const mine = faults.filter((fault) => fault.rule === rule);
        if (mine.length > 0)
          note(rule, {
            kind: 'fail',
            rule,
            evidence: mine
              .map(({ text }) => text)
              .slice(0, 3)
              .join('; '),
          });
        else if (looked > 0) note(rule, { kind: 'pass', evidence: `${looked} ${watch.what}` });
      }
    }
  } finally {
    for (const space of opened) space.close();
  }
  return rules.map((rule) => resultOf(rule, found.get(rule.id) ?? []));
}

/** A channel of the run's own, where the gateway makes channels; an agent that takes turns, where one may attach. */
async function prepare(target: Target, shared: OpenSpace): Promise<void> {
  // What goes wrong here goes wrong in the checks as well, which say so.
  if (lacks(target, ['agent']) === undefined) await shared.actor().catch(() => {});
  await shared.channel().then(
    (lane) => shared.talkIn({ thread_id: null, ...lane }),
    () => {},
  );
  await shared.tidy();
}

const whatIsNeeded: Record<Need, string> = {
  agent: 'an agent token and the address of /agent',
  admin: 'the admin API',
  socket: 'a real socket',
  doors: 'two edges',
};

function lacks(target: Target, needs: readonly Need[] = []): Need | undefined {
  const there: Record<Need, boolean> = {
    agent: target.agent_token !== undefined && target.doors[0]?.agent !== undefined,
    admin: target.admin !== undefined,
    socket: target.doors[0]?.from !== undefined,
    doors: target.doors.length > 1,
  };
  return needs.find((one) => !there[one]);
}

async function verdictOf(
  check: Check,
  target: Target,
  shared: OpenSpace,
  opened: OpenSpace[],
  seen: Seen,
  max_seconds: number,
): Promise<Verdict> {
  const missing = lacks(target, check.needs);
  if (missing !== undefined) return { kind: 'needs', what: whatIsNeeded[missing] };
  if ((check.seconds ?? (check.slow ? 60 : 0)) > max_seconds) return { kind: 'needs', what: '--slow' };
  const mine: OpenSpace[] = [];
  // What is opened there stays open while the others come and go.
  const space = check.seconds === undefined ? shared : openSpace(target, target, seen);
  if (space !== shared) mine.push(space);
  try {
    return { kind: 'pass', evidence: await check.run(ctxOf(target, space, mine, opened, seen)) };
  } catch (error) {
    const what = neededBy(error);
    if (what !== undefined) return { kind: 'needs', what };
    const rule = ruleOf(error);
    return { kind: 'fail', ...(rule === undefined ? {} : { rule }), evidence: oneLine((error as Error).message) };
  } finally {
    for (const space of mine) space.close();
  }
}

let texts = 0;
function ctxOf(target: Target, shared: OpenSpace, mine: OpenSpace[], opened: OpenSpace[], seen: Seen): Ctx {
  const admin = () => {
    if (target.admin === undefined) throw need(whatIsNeeded.admin);
    return target.admin;
  };
  const ctx = {
    target,
    get admin() {
      return admin();
    },
    text: (what = 'text') => `${what} ${++texts} ${Date.now().toString(36)}`,
    async own(quotas?: Readonly<Record<string, number>>) {
      const tenant = await admin().tenant(quotas);
      const space = openSpace(target, tenant, seen);
      mine.push(space);
      opened.push(space);
      return Object.create(space, { tenant_id: { value: tenant.tenant_id, enumerable: true } }) as OpenSpace & {
        readonly tenant_id: string;
      };
    },
    quiet: (ms: number): Promise<void> =>
      target.patience.wait<never>(() => undefined, { within_ms: ms, describe: () => '' }).catch(() => {}),
  };
  // Getters and all: the lane may change.
  return Object.create(shared, Object.getOwnPropertyDescriptors(ctx)) as Ctx;
}

function resultOf({ id, later }: Rule, verdicts: readonly Verdict[]): Result {
  const result = (outcome: Outcome, evidence: string): Result => ({ rule: id, outcome, later, evidence });
  const failed = verdicts.flatMap((one) => (one.kind === 'fail' ? [one.evidence] : []));
  const passed = verdicts.flatMap((one) => (one.kind === 'pass' ? [one.evidence] : []));
  const needs = verdicts.flatMap((one) => (one.kind === 'needs' ? [one.what] : []));
  if (failed.length > 0) return result(later ? 'later' : 'fail', failed[0]!);
  if (passed.length > 0) return result('pass', [...new Set(passed)].slice(0, 2).join('; '));
  if (needs.length > 0) return result('needs', [...new Set(needs)].join(', '));
  const why = outside.get(id);
  return why === undefined ? result('unchecked', '') : result('outside', why);
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').slice(0, 400);

/** What is checked or watched, and what is said to be out of sight: for a test that no rule is forgotten. */
export function coverage(): { readonly checked: ReadonlySet<string>; readonly outside: ReadonlyMap<string, string> } {
  return { checked: new Set([...allChecks.flatMap(({ rules }) => rules), ...watches.flatMap(({ rules }) => rules)]), outside };
}
