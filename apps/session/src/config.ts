import { Quotas } from '@iris/protocol';
import { type Static, Type } from 'typebox';

const ms = (value: number, description: string) => Type.Integer({ default: value, minimum: 1, maximum: 24 * 3600 * 1000, description });

const count = (value: number, description: string) => Type.Integer({ default: value, minimum: 1, maximum: 1_000_000, description });

/** What a session instance can be told. The quotas are the defaults of tenants that have none of their own. */
export const SessionConfig = Type.Object({
  ...Quotas.properties,
  grace_ms: ms(30_000, 'milliseconds an agent may be away before its turns are ended'),
  stop_deadline_ms: ms(10_000, 'milliseconds from `agent.stop` to the end of the turn, whatever the agent does'),
  turn_silence_ms: ms(600_000, 'milliseconds without a frame of a running turn after which an operator is told'),
  sweep_ms: ms(1_000, 'how often turns and pickers are looked after'),
  scan_ms: ms(10_000, 'how often open turns are looked up, so that those of a dead instance are taken over'),
  settle_ms: ms(7_000, 'milliseconds an instance listens before it takes silence of an agent for its absence'),
  resume_ms: ms(
    5_000,
    'milliseconds a new agent process has to say what it kept, before turns it does not go on with are ended or sent again',
  ),
  notice_ms: ms(2_000, 'milliseconds without an agent before a waiting message is answered with a notice'),
  picker_ms: ms(24 * 3600 * 1000, 'milliseconds after which a picker expires that does not say when'),
  unanswered_ms: ms(
    30_000,
    'milliseconds an agent has to go on with a turn whose question nobody answered in time, before the turn is stopped',
  ),
  typing_ms: ms(10_000, 'milliseconds after which typing ends by itself'),
  cache_ms: ms(30_000, 'milliseconds a row is kept that nobody said had changed'),
  idle_ms: ms(600_000, 'milliseconds after which what is remembered of a silent connection or tenant is dropped'),
  retry_ms: ms(50, 'first pause before a store that failed is asked again; doubles up to a second'),
  requests_at_once: count(
    1_024,
    'requests under way at once, seven eighths of them of one tenant at most; others wait, and who is next goes by weight',
  ),
  reads_at_once: count(32, 'the same for questions that change nothing, such as `history` and `search`'),
  hellos_at_once: count(256, 'the same for hellos'),
  push_providers: Type.Array(Type.String({ pattern: '^(fcm|webpush|ntfy)$' }), {
    default: [],
    description: 'who may carry pushes: fcm, webpush, ntfy; the workers have their credentials',
  }),
  push_delay_ms: ms(1_000, 'milliseconds from a frame worth a push to the look at who has not got it'),
  push_fence_ms: ms(1_000, 'milliseconds a hello waits at most for a push that is under way to its device'),
  push_vapid_public_key: Type.Optional(Type.String({ description: 'what browsers subscribe with: the public half of the workers’ key' })),
  heartbeat_ms: ms(15_000, 'what agents are told about how often to say something'),
  client_ref_ms: ms(24 * 3600 * 1000, 'milliseconds a `client_ref` stands for the same message'),
  media_ready_ms: ms(8_000, 'milliseconds that the answer to an upload waits for a worker to look at the file'),
  cursor_block: Type.Integer({
    default: 10_000,
    minimum: 1,
    maximum: 1_000_000,
    description: 'cursors reserved in Postgres at a time, and the most that are skipped when the outbox lost its place',
  }),
});
export type SessionConfig = Static<typeof SessionConfig>;

/** Every value as it is when nothing is set. */
export const defaultSessionConfig: SessionConfig = Object.freeze(
  Object.fromEntries(
    Object.entries(SessionConfig.properties).flatMap(([name, schema]) => {
      const { default: value } = schema as { default?: unknown };
      return value === undefined ? [] : [[name, value]];
    }),
  ),
) as unknown as SessionConfig;
