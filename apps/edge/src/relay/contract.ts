import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';

/** The connector's side of Hermes' relay contract, version 1: newline-delimited JSON in text frames. */
export const contract_version = 1;

const Text = Type.String({ maxLength: 1024 * 1024 });
const Optional = Type.Optional(Type.Union([Text, Type.Null()]));
/** Of an action we read these; anything else passes by. */
const Action = Type.Object({
  op: Type.String({ maxLength: 64 }),
  chat_id: Optional,
  content: Optional,
  message_id: Optional,
  draft_id: Type.Optional(Type.Unknown()),
  finalize: Type.Optional(Type.Unknown()),
  final: Type.Optional(Type.Unknown()),
  on: Type.Optional(Type.Unknown()),
  metadata: Type.Optional(Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()])),
  name: Optional,
  thread_id: Optional,
  only_if_current_name: Optional,
  prompt_id: Optional,
  prompt_kind: Optional,
  options: Type.Optional(Type.Array(Type.Unknown(), { maxItems: 200 })),
  timeout_s: Type.Optional(Type.Unknown()),
  source_url: Optional,
  filename: Optional,
});
const RelayFrame = Type.Object({
  type: Type.String({ maxLength: 64 }),
  platform: Type.Optional(Type.String({ maxLength: 64 })),
  requestId: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  bufferId: Type.Optional(Type.String({ maxLength: 128 })),
  action: Type.Optional(Action),
});

export type RelayAction = Static<typeof Action>;
export type RelayFrame = Static<typeof RelayFrame>;

const validator = Compile(RelayFrame);

/** Frames of one message. @throws SyntaxError when one is none */
export function relayFrames(text: string): RelayFrame[] {
  return text.split('\n').flatMap((line) => {
    if (line.trim() === '') return [];
    const frame: unknown = JSON.parse(line);
    if (!validator.Check(frame)) throw new SyntaxError('not a frame of the relay contract');
    return [frame];
  });
}

export const relayText = (frame: object): string => `${JSON.stringify(frame)}\n`;

/** What this connector can do for the platform that Hermes names. */
export const descriptor = (platform: string) => ({
  contract_version,
  platform,
  label: 'Iris',
  max_message_length: 16_000,
  supports_draft_streaming: false,
  supports_edit: true,
  supports_threads: true,
  markdown_dialect: 'markdown',
  len_unit: 'chars',
  emoji: '🌈',
  platform_hint: 'You are talking in the Iris apps: Markdown is rendered.',
  pii_safe: true,
  supports_context: false,
  supported_ops: ['send', 'edit', 'typing', 'follow_up', 'prompt', 'delete', 'thread_create', 'thread_rename', 'get_chat_info'],
});

/** One message of a person, for Hermes. */
export interface RelayEvent {
  readonly text: string;
  readonly message_type: 'text';
  readonly message_id: string;
  readonly reply_to_message_id?: string;
  readonly media_urls?: readonly string[];
  readonly prompt_response?: { readonly prompt_id: string; readonly option_id: string; readonly label?: string };
  readonly source: {
    readonly platform: string;
    readonly chat_id: string;
    readonly chat_type: 'dm';
    readonly chat_name: string;
    readonly user_id: string;
    readonly user_name: string;
    readonly thread_id?: string;
    readonly message_id: string;
  };
}

const prefix = 'android:';
/** Chat ids lose their prefix inside Hermes, whose delivery targets would take the colon for their own. */
export const inside = (chat_id: string): string => (chat_id.startsWith(prefix) ? chat_id.slice(prefix.length) : chat_id);
export const outside = (chat_id: string): string => (chat_id.includes(':') ? chat_id : `${prefix}${chat_id}`);
