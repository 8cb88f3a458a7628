/** One line of SPEC.md. */
export interface Rule {
  /** Such as `MSG4`. */
  readonly id: string;
  readonly text: string;
  /** Law, but not built yet. */
  readonly later: boolean;
}

const line = /^- \*\*([A-Z]{3}\d+)\*\* (.+?)( — later)?$/;

/** The rules of SPEC.md, in its order. @throws Error naming a list line that is no rule, or an id that comes twice */
export function parseRules(markdown: string): Rule[] {
  const rules = new Map<string, Rule>();
  for (const source of markdown.split('\n')) {
    if (!source.startsWith('- ')) continue;
    const match = line.exec(source);
    if (match === null) throw new Error(`SPEC.md: no rule: ${source}`);
    const [, id, text, later] = match;
    if (rules.has(id!)) throw new Error(`SPEC.md: ${id} stands twice`);
    rules.set(id!, { id: id!, text: text!, later: later !== undefined });
  }
  return [...rules.values()];
}
