import type { AgentDownPayload, AgentUpPayload } from '@iris/protocol';

export type MediaEntry = AgentDownPayload<'history'>['messages'][number]['media'] extends infer M | undefined
  ? M extends readonly (infer E)[]
    ? E
    : never
  : never;
export type Runtime = NonNullable<AgentUpPayload<'message.stop'>['runtime']>;
export type Role = AgentUpPayload<'message.start'>['role'];
export type BusyReason = AgentUpPayload<'agent.busy'>['reason'];
export type NotificationKind = AgentUpPayload<'notification'>['kind'];
export type Outcome = AgentUpPayload<'turn.end'>['outcome'];
export type PickerOption = AgentUpPayload<'picker.choice'>['choices'][number];
export type Provider = AgentUpPayload<'picker.model'>['providers'][number];
export type Channel = AgentDownPayload<'hello.ack'>['channels'][number];
export type HistoryPage = AgentDownPayload<'history'>;
export type SearchResults = AgentDownPayload<'search.results'>;
export type CatalogEntry = AgentUpPayload<'commands.catalog'>['commands'][number];
export type Caps = NonNullable<AgentUpPayload<'hello'>['caps']>;

/** What a finished message may carry beside its text. */
export interface MessageMore {
  /** Default `assistant`; `cron` and `system` for what no user asked for. */
  readonly role?: Role;
  readonly reasoning?: string;
  readonly media?: readonly MediaEntry[];
  readonly reply_to?: string;
  readonly model?: string;
  readonly tokens?: number;
  readonly runtime?: Runtime;
  /** Your own id: the same one again is the same message (a cron occurrence that fires twice). Default: a new one. */
  readonly message_id?: string;
}

/** What a streamed message carries when it ends. */
export type StopMore = Pick<MessageMore, 'media' | 'model' | 'tokens' | 'runtime'>;

/** A message that grows while people watch. Calls after its end do nothing. */
export interface Stream {
  /** Of the message that grows now; a text over 64 KiB goes on in a new message. */
  readonly message_id: string;
  /** Add to the text. A character may be split between two chunks. */
  write(chunk: string): void;
  /** Add to the reasoning, which apps show above the text. */
  reason(chunk: string): void;
  /** Put another text in the place of what stands. At most 64 KiB; the rest is cut off. */
  replace(text: string): void;
  /** It is finished. Ending a turn finishes what is still open. */
  stop(more?: StopMore): void;
}

/** A tool at work. Calls after its end do nothing. */
export interface Tool {
  readonly index: number;
  progress(note: string): void;
  /** `duration` in seconds; default: since it began. `output_preview`: the tail is kept, 2,000 characters. */
  end(result?: { ok?: boolean; output_preview?: string; duration?: number }): void;
}

/**
 * What became of a question. `value` is null when nobody answered: `expired` (its time passed), `turn_ended`,
 * `stopped` (the person stopped the turn), `withdrawn` (your `signal`).
 */
export interface Answer<V> {
  readonly value: V | null;
  readonly reason: 'answered' | 'expired' | 'turn_ended' | 'stopped' | 'withdrawn';
}

export interface Question {
  readonly title?: string;
  readonly body?: string;
  /** Milliseconds until the gateway takes it back. Without it the question stays until the turn ends. */
  readonly timeout_ms?: number;
  /** Aborting it takes the question back. */
  readonly signal?: AbortSignal;
}
export interface ChoiceQuestion extends Question {
  readonly choices: readonly PickerOption[];
}
export interface ApprovalQuestion extends Question {
  readonly command?: string;
  /** Default: `approve` and `deny`. */
  readonly choices?: readonly PickerOption[];
}
export interface ConfirmQuestion extends Question {
  readonly yes?: string;
  readonly no?: string;
}
export interface ClarifyQuestion extends Question {
  readonly question?: string;
  readonly choices?: readonly PickerOption[];
  /** May be answered with any text; default: true when there are no choices. */
  readonly allow_text?: boolean;
  /** Several choices at once. */
  readonly multi?: boolean;
}
export interface ModelQuestion extends Question {
  readonly providers: readonly Provider[];
  readonly current_provider?: string;
  readonly current_model?: string;
}

/** Questions to the person: native pickers on every device, the first answer counts. None of them rejects. */
export interface Ask {
  choice(question: ChoiceQuestion): Promise<Answer<string>>;
  approval(question: ApprovalQuestion): Promise<Answer<string>>;
  confirm(question: ConfirmQuestion): Promise<Answer<boolean>>;
  clarify(question: ClarifyQuestion & { readonly multi: true }): Promise<Answer<string[]>>;
  clarify(question: ClarifyQuestion): Promise<Answer<string>>;
  model(question: ModelQuestion): Promise<Answer<{ provider: string; model: string }>>;
}

/** One line of conversation: a channel, or a thread in it. */
export interface Lane {
  /** Undefined only for the default channel before the first `hello.ack`. */
  readonly chat_id: string | undefined;
  readonly thread_id: string | null;
  readonly ask: Ask;
  /** A whole message at once. Returns its id (of the first, when a text over 64 KiB goes as several). */
  say(text: string, more?: MessageMore): string;
  /** A beat between tools ("Let me look at the tests first."). */
  commentary(text: string): void;
  notify(notification: { kind?: NotificationKind; title: string; body: string }): void;
  /** Ends by itself after 10 s. */
  typing(on: boolean): void;
  /** Media that the gateway has ({@link upload}) as a message part of its own. */
  offer(media: MediaEntry): void;
  /** Store bytes with the gateway; the entry goes into `say`, `stop` or {@link offer}. Rejects with `LinkError`. */
  upload(file: { kind: MediaEntry['kind']; mime: string; bytes: Uint8Array; filename?: string }): Promise<MediaEntry>;
  /** Delete messages: by the ids you gave them, or those of the wire. */
  delete(message_ids: readonly string[]): void;
  /** Name the lane. `only_if_current`: a person's rename wins. Rejects with `LinkError`. */
  rename(name: string, options?: { only_if_current?: string }): Promise<void>;
  /** A new thread in this channel. Rejects with `LinkError`. */
  createThread(name: string): Promise<Channel>;
  /** The lane's past, oldest first. Rejects with `LinkError`. */
  history(options?: { before_message_id?: string; limit?: number }): Promise<HistoryPage>;
}

/** One run of the agent, from the message that starts it to its end. After its end, and once it is stopped, nothing more is sent. */
export interface Turn extends Lane {
  readonly chat_id: string;
  readonly turn_id: string;
  readonly kind: 'chat' | 'command';
  /** Above 1 when an earlier process was given the turn and never began it. */
  readonly attempt: number;
  readonly message: {
    readonly message_id: string;
    readonly text: string;
    readonly ts: number;
    readonly reply_to?: string | null;
    readonly media?: readonly MediaEntry[];
  };
  /** When the text begins with a command of the catalog: its name (aliases resolved) and the rest. */
  readonly command: { readonly name: string; readonly args: string } | undefined;
  readonly user: { readonly device_id?: string; readonly name?: string } | undefined;
  /** `auto`: the lane has an automatic name, and waits for a better one. */
  readonly channel: { readonly name: string; readonly kind: string; readonly auto?: boolean } | undefined;
  /** Aborted when the person stops the turn, its channel is deleted, or the agent shuts down. Give it to `fetch`. */
  readonly signal: AbortSignal;
  /** Add to the answer, opening it when needed. */
  write(chunk: string): void;
  /** Add to the answer's reasoning. */
  reason(chunk: string): void;
  /** Finish the answer as it stands; the next `write` begins another message. */
  stop(more?: StopMore): void;
  /** A streamed message of your own beside the answer. */
  stream(options?: { role?: Role }): Stream;
  tool(name: string, more?: { preview?: string; args?: unknown }): Tool;
  /** What devices show while the turn runs. Set by itself while a tool works or a question is open. */
  busy(reason: BusyReason): void;
  /** For the footer of the answer; `latency` is measured by itself. */
  meta(more: StopMore & { usage?: Record<string, unknown> }): void;
  /**
   * Messages that arrive while the turn runs. Return true for what you will use: what you don't take becomes
   * the lane's next turn, and so does everything while no handler is set.
   */
  onSteer(handler: ((text: string, message_id: string | undefined) => boolean) | undefined): void;
  /** A title for a lane with an automatic name; does nothing when a person named it. */
  title(name: string): void;
}

/** What a turn's function gives back: nothing, the answer's (last) text, or its chunks. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing is the usual case
export type TurnResult = void | string | AsyncIterable<string>;
export type TurnHandler = (turn: Turn) => TurnResult | Promise<TurnResult>;

/** One entry of the catalog behind `/`. */
export interface Command extends CatalogEntry {
  /** Runs the command; without it `onTurn` gets the turn. */
  readonly run?: TurnHandler;
}
