import type { Clock, Timer } from './clock.js';
import type { Down, UpBody } from './frame.js';
import type { Answer, Ask, ClarifyQuestion, PickerOption, Question } from './types.js';

type PickerBody = Extract<UpBody, { type: 'picker.choice' | 'picker.approval' | 'picker.confirm' | 'picker.clarify' | 'picker.model' }>;
type Value = string | readonly string[];
type Closed = Exclude<Answer<unknown>['reason'], 'answered'>;
/** The payload of a picker but for what every picker has. */
type Bare<T extends PickerBody> = T extends PickerBody
  ? { type: T['type']; payload: Omit<T['payload'], 'picker_id' | 'title' | 'body' | 'expires_at'> }
  : never;

/** The open questions of the whole agent, by the ids it gave them. */
export interface OpenQuestions {
  /** Undefined when the frame answers none that is open (it was answered already, or by an earlier process). */
  told(frame: Extract<Down, { type: 'picker.select' | 'picker.closed' }>): void;
  add(picker_id: string, settle: (answer: Answer<Value>) => void): void;
  remove(picker_id: string): void;
}

export function openQuestions(): OpenQuestions {
  const open = new Map<string, (answer: Answer<Value>) => void>();
  return {
    told(frame) {
      const settle = open.get(frame.payload.picker_id);
      if (frame.type === 'picker.select') settle?.({ value: frame.payload.value, reason: 'answered' });
      else settle?.({ value: null, reason: frame.payload.reason });
    },
    add: (picker_id, settle) => void open.set(picker_id, settle),
    remove: (picker_id) => void open.delete(picker_id),
  };
}

/** Where questions are asked: a turn, or a lane outside any turn. */
export interface AskPlace {
  readonly clock: Clock;
  readonly open: OpenQuestions;
  newId(): string;
  keep(frame: UpBody): void;
  /** Undefined while questions may be asked; else why not. */
  over(): Closed | undefined;
  /** A question is open, or no longer. */
  asking?(picker_id: string, isOpen: boolean, close: (reason: Closed) => void): void;
  /** Milliseconds the gateway's clock is ahead. */
  skew_ms(): number;
}

/** The gateway decides when a question has expired; should it never say so, we do, this much later. */
const overdue_ms = 15_000;
const approve: readonly PickerOption[] = [
  { value: 'approve', label: 'Approve', style: 'primary' },
  { value: 'deny', label: 'Deny', style: 'danger' },
];

export function createAsk(place: AskPlace): Ask {
  function ask(question: Question, bare: Bare<PickerBody>): Promise<Answer<Value>> {
    const why = place.over() ?? (question.signal?.aborted ? 'withdrawn' : undefined);
    if (why) return Promise.resolve({ value: null, reason: why });
    const picker_id = place.newId();
    const { timeout_ms, title, body, signal } = question;
    return new Promise((resolve) => {
      let timer: Timer | undefined;
      const settle = (answer: Answer<Value>) => {
        timer?.cancel();
        signal?.removeEventListener('abort', withdraw);
        place.open.remove(picker_id);
        place.asking?.(picker_id, false, () => {});
        resolve(answer);
      };
      const takeBack = (reason: 'withdrawn' | 'expired') => {
        place.keep({ type: 'picker.closed', payload: { picker_id, reason } });
        settle({ value: null, reason });
      };
      const withdraw = () => takeBack('withdrawn');
      signal?.addEventListener('abort', withdraw);
      if (timeout_ms !== undefined) timer = place.clock.after(timeout_ms + overdue_ms, () => takeBack('expired'));
      place.open.add(picker_id, settle);
      const common = {
        picker_id,
        ...(title === undefined ? {} : { title }),
        ...(body === undefined ? {} : { body }),
        ...(timeout_ms === undefined ? {} : { expires_at: Math.round(place.clock.now() + timeout_ms + place.skew_ms()) }),
      };
      place.keep({ type: bare.type, payload: { ...common, ...bare.payload } } as UpBody);
      place.asking?.(picker_id, true, (reason) => settle({ value: null, reason }));
    });
  }

  const one = async (answer: Promise<Answer<Value>>): Promise<Answer<string>> => {
    const { value, reason } = await answer;
    return { value: value === null || typeof value === 'string' ? value : (value[0] ?? ''), reason };
  };
  const copy = (choices: readonly PickerOption[]) => choices.map((choice) => ({ ...choice }));

  async function clarify(question: ClarifyQuestion & { readonly multi: true }): Promise<Answer<string[]>>;
  async function clarify(question: ClarifyQuestion): Promise<Answer<string>>;
  async function clarify(question: ClarifyQuestion): Promise<Answer<string[]> | Answer<string>> {
    const { choices, multi } = question;
    const answer = ask(question, {
      type: 'picker.clarify',
      payload: {
        ...(question.question === undefined ? {} : { question: question.question }),
        ...(choices === undefined ? {} : { choices: copy(choices) }),
        allow_text: question.allow_text ?? choices === undefined,
        ...(multi === undefined ? {} : { multi }),
      },
    });
    if (!multi) return one(answer);
    const { value, reason } = await answer;
    return { value: value === null ? null : typeof value === 'string' ? [value] : [...value], reason };
  }

  return {
    clarify,
    choice: (question) => one(ask(question, { type: 'picker.choice', payload: { choices: copy(question.choices) } })),
    approval: (question) =>
      one(
        ask(question, {
          type: 'picker.approval',
          payload: { choices: copy(question.choices ?? approve), ...(question.command === undefined ? {} : { command: question.command }) },
        }),
      ),
    async confirm(question) {
      const choices = [
        { value: 'yes', label: question.yes ?? 'Yes', style: 'primary' },
        { value: 'no', label: question.no ?? 'No' },
      ];
      const { value, reason } = await one(ask(question, { type: 'picker.confirm', payload: { choices } }));
      return { value: value === null ? null : value === 'yes', reason };
    },
    async model(question) {
      const { value, reason } = await one(
        ask(question, {
          type: 'picker.model',
          payload: {
            providers: question.providers.map((provider) => ({ ...provider, models: [...provider.models] })),
            ...(question.current_provider === undefined ? {} : { current_provider: question.current_provider }),
            ...(question.current_model === undefined ? {} : { current_model: question.current_model }),
          },
        }),
      );
      if (value === null) return { value, reason };
      // Both ids may hold a slash: only what was offered says where one ends and the other begins.
      for (const { id: provider, models } of question.providers) {
        for (const { id: model } of models) if (value === `${provider}/${model}`) return { value: { provider, model }, reason };
      }
      const at = value.indexOf('/');
      return { value: { provider: value.slice(0, Math.max(0, at)), model: value.slice(at + 1) }, reason };
    },
  };
}
