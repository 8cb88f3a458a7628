/** Text of a model that writes its reasoning into its answer, between `<think>` and `</think>` at the very beginning. */
export interface ThinkFilter {
  /** What is reasoning and what is text in the next piece; what may be half a tag is held back. */
  feed(text: string): { reasoning: string; text: string };
  /** What was held back. */
  end(): { reasoning: string; text: string };
}

const open = '<think>';
const close = '</think>';

export function thinkFilter(): ThinkFilter {
  let state: 'start' | 'inside' | 'behind' | 'outside' = 'start';
  let held = '';

  const feed = (text: string): { reasoning: string; text: string } => {
    held += text;
    let reasoning = '';
    if (state === 'start') {
      const begun = held.trimStart();
      if (begun.length < open.length && open.startsWith(begun)) return { reasoning, text: '' };
      if (begun.startsWith(open)) {
        state = 'inside';
        held = begun.slice(open.length);
      } else state = 'outside';
    }
    if (state === 'inside') {
      const at = held.indexOf(close);
      const until = at >= 0 ? at : held.length - halfTag(held);
      reasoning = held.slice(0, until);
      held = held.slice(at >= 0 ? until + close.length : until);
      if (at < 0) return { reasoning, text: '' };
      state = 'behind';
    }
    if (state === 'behind') {
      held = held.trimStart();
      if (held !== '') state = 'outside';
    }
    const out = held;
    held = '';
    return { reasoning, text: out };
  };
  return {
    feed,
    end() {
      const out = held;
      held = '';
      return state === 'inside' ? { reasoning: out, text: '' } : { reasoning: '', text: out };
    },
  };
}

/** How many characters at the end may be the beginning of the closing tag. */
function halfTag(text: string): number {
  for (let length = Math.min(close.length - 1, text.length); length > 0; length--) if (text.endsWith(close.slice(0, length))) return length;
  return 0;
}
