/** The conformance kit against a world: whole, and with one thing of it broken at a time. */
import { type AnyFrame, conformanceTarget, type Dial, makeWorld } from '@iris/testkit';
import { type Result, runConformance, specRules } from '@iris/testkit/conformance';
import { describe, expect, jest, test } from '@jest/globals';

jest.setTimeout(120_000);
const rules = specRules();

async function ask(between?: (dial: Dial) => Dial, only?: readonly string[]): Promise<readonly Result[]> {
  const world = await makeWorld();
  try {
    const target = await conformanceTarget(world, between);
    return await runConformance(target, { rules, max_seconds: 60, at_once: 1, ...(only ? { only } : {}) });
  } finally {
    for (const member of [...world.edges, ...world.sessions]) member.kill();
    world.time.end();
  }
}
const shown = (results: readonly Result[]) => results.map(({ rule, outcome, evidence }) => `${rule} ${outcome}: ${evidence}`);

test('a gateway that is whole holds every rule that is built and can be asked about here', async () => {
  const results = await ask();
  expect(shown(results.filter(({ outcome }) => outcome === 'fail' || outcome === 'unchecked'))).toEqual([]);
  // What a world has not: a WebSocket server of its own, and an operator who revokes.
  const unasked = results.filter(({ outcome, later }) => outcome === 'needs' && !later).map(({ rule }) => rule);
  expect(unasked).toEqual(['HEL15', 'HEL29', 'CLS3', 'SYN8', 'UPL17']);
  expect(results.filter(({ outcome }) => outcome === 'pass').length).toBeGreaterThan(200);
});

/** What becomes of the frames of one connection on their way to the device. */
interface Tap {
  down(frame: Mutable): readonly object[];
  closed?(code: number): number;
}
type Mutable = { -readonly [K in keyof AnyFrame]: AnyFrame[K] } & { payload: Record<string, unknown> };

const between =
  (tap: () => Tap) =>
  (dial: Dial): Dial =>
  (events) => {
    const { down, closed = (code: number) => code } = tap();
    return dial({
      ...events,
      closed: (code, reason) => events.closed(closed(code), reason),
      message(data) {
        if (typeof data !== 'string') return events.message(data);
        for (const frame of down(JSON.parse(data) as Mutable)) events.message(JSON.stringify(frame));
      },
    });
  };
/** A tap that changes, or swallows, each frame by itself. */
const each = (change: (frame: Mutable) => object | readonly object[] | undefined) =>
  between(() => ({ down: (frame) => [change(frame) ?? []].flat() }));
/** …of these types. */
const of = (types: string, change: (frame: Mutable) => object | readonly object[] | undefined) =>
  each((frame) => (types.split(' ').includes(frame.type) ? change(frame) : frame));
const payload = (frame: Mutable, more: Record<string, unknown>) => ({ ...frame, payload: { ...frame.payload, ...more } });
/** The same with its files changed, in a message or a page of them. */
const entries =
  (change: (entry: Record<string, unknown>) => object) =>
  (frame: Mutable): Mutable => {
    const within = <T extends object>(one: T) => ({
      ...one,
      ...('media' in one ? { media: (one.media as Record<string, unknown>[]).map(change) } : {}),
    });
    const { messages } = frame.payload;
    const changed = messages === undefined ? frame.payload : { ...frame.payload, messages: (messages as object[]).map(within) };
    return { ...frame, payload: within(changed) as Mutable['payload'] };
  };
const durable = /^(message|message\.start|message\.stop|tool\.start|tool\.end|commentary|notification)$/;

/** A name, the rule that must be found broken, the checks that are asked, and what is broken. */
const mutations: readonly (readonly [what: string, rule: string, only: readonly string[], break_: (dial: Dial) => Dial])[] = [
  [
    'every third message is lost',
    'ORD3',
    ['ORD3'],
    between(() => {
      let n = 0;
      return { down: (frame) => (frame.type === 'message' && frame.id === undefined && ++n % 3 === 0 ? [] : [frame]) };
    }),
  ],
  [
    'every durable frame comes twice',
    'ORD1',
    ['OUT7'],
    each((frame) => (durable.test(frame.type) && frame.id === undefined ? [frame, frame] : frame)),
  ],
  [
    'two messages change places',
    'ORD1',
    ['OUT7'],
    between(() => {
      let held: Mutable | undefined;
      return {
        down(frame) {
          if (frame.type !== 'message' || frame.id !== undefined) return [frame];
          const before = held;
          held = before === undefined ? frame : undefined;
          return before === undefined ? [] : [frame, before];
        },
      };
    }),
  ],
  ['answers lose their id', 'ENV3', ['ENV3'], of('history pong', ({ id: _, ...frame }) => frame)],
  ['requests are answered twice', 'ENV21', ['KEE1'], each((frame) => (frame.id === undefined ? frame : [frame, frame]))],
  [
    'another device is told the id',
    'ENV25',
    ['ORD3'],
    between(() => {
      let n = 0;
      return { down: (frame) => [frame.type === 'message' && frame.id === undefined ? { id: ++n, ...frame } : frame] };
    }),
  ],
  ['live frames carry a cursor for all', 'ENV18', ['CAP2'], of('message', (frame) => ({ cursor: 7, ...frame }))],
  [
    'an update comes after its stop',
    'STR6',
    ['STR1'],
    of('message.stop', (frame) => [
      frame,
      { ...frame, type: 'message.update', payload: { message_id: frame.payload.message_id, text: frame.payload.final_text } },
    ]),
  ],
  [
    'updates go backwards',
    'ORD4',
    ['STR4'],
    between(() => {
      const first = new Map<unknown, unknown>();
      return {
        down(frame) {
          if (frame.type !== 'message.update') return [frame];
          const { message_id, text } = frame.payload;
          if (!first.has(message_id)) first.set(message_id, text);
          return [frame, payload(frame, { text: first.get(message_id) })];
        },
      };
    }),
  ],
  [
    'an update has only what is new',
    'STR2',
    ['STR4'],
    between(() => {
      let last = '';
      return {
        down(frame) {
          if (frame.type !== 'message.update') return [frame];
          const text = String(frame.payload.text);
          const more = text.slice(last.length).padEnd(text.length, '.');
          last = text;
          return [payload(frame, { text: more })];
        },
      };
    }),
  ],
  [
    'not_found is said as unsupported',
    'MSG3',
    ['MSG3'],
    of('error', (frame) => (frame.payload.code === 'not_found' ? payload(frame, { code: 'unsupported' }) : frame)),
  ],
  ['refusals are internal', 'ENV26', ['HIS5'], of('error', (frame) => payload(frame, { code: 'internal' }))],
  ['an error has a code of its own', 'ERR2', ['HIS5'], of('error', (frame) => payload(frame, { code: 'teapot' }))],
  ['rate_limited does not say when to come back', 'ERR4', ['LIM14'], of('error', (frame) => payload(frame, { retry_after_ms: undefined }))],
  ['no status follows hello.ack', 'HEL21', ['HEL21'], of('status', () => undefined)],
  ['a new device starts at 0', 'HEL19', ['HEL19'], of('hello.ack', (frame) => payload(frame, { sync_cursor: 0 }))],
  [
    'who joins in mid-answer is not told what runs',
    'HEL22',
    ['HEL22'],
    between(() => {
      let frames = 0;
      return { down: (frame) => (++frames < 12 && frame.type === 'message.update' ? [] : [frame]) };
    }),
  ],
  ['has_more is always true', 'HIS3', ['HIS3'], of('history', (frame) => payload(frame, { has_more: true }))],
  [
    'history is newest first',
    'HIS1',
    ['HIS1'],
    of('history', (frame) => payload(frame, { messages: [...(frame.payload.messages as unknown[])].reverse() })),
  ],
  [
    'history has another ts than was told',
    'MSG10',
    ['HIS1'],
    of('history', (frame) =>
      payload(frame, { messages: (frame.payload.messages as { ts: number }[]).map((row) => ({ ...row, ts: row.ts + 1 })) }),
    ),
  ],
  [
    'history has lost the size of a file',
    'MSG10',
    ['MSG14'],
    of(
      'history',
      entries(({ size: _, ...entry }) => entry),
    ),
  ],
  [
    'history says more of a file than was told',
    'MSG10',
    ['MSG14'],
    of(
      'history',
      entries((entry) => ({ ...entry, width: 640 })),
    ),
  ],
  [
    'a replayed message has another type of file',
    'MSG10',
    ['MSG14'],
    of('message', (frame) => (frame.cursor === undefined ? frame : entries((entry) => ({ ...entry, mime: 'image/gif' }))(frame))),
  ],
  [
    'history has no tokens',
    'HIS6',
    ['STR3'],
    of('history', (frame) =>
      payload(frame, { messages: (frame.payload.messages as object[]).map((row) => ({ ...row, tokens: undefined })) }),
    ),
  ],
  ['the echo has no client_ref', 'MSG1', ['MSG1'], of('message', (frame) => payload(frame, { client_ref: undefined }))],
  [
    'a client_ref that was used makes a new message',
    'MSG4',
    ['MSG4'],
    between(() => {
      let n = 0;
      return {
        down: (frame) => [
          frame.type === 'message' && frame.payload.client_ref !== undefined ? payload(frame, { message_id: `m_${++n}` }) : frame,
        ],
      };
    }),
  ],
  [
    'texts are normalised',
    'ENV16',
    ['ENV16'],
    of('message', (frame) => payload(frame, { text: String(frame.payload.text).trim().normalize('NFKC').replace('\ufeff', '') })),
  ],
  [
    'a frame of another tenant comes by',
    'HEL7',
    ['HEL7'],
    (() => {
      const others: Mutable[] = [];
      return between(() => {
        const mine: Mutable[] = [];
        return {
          down(frame) {
            const { id: _, ...bare } = frame;
            const foreign = others.filter((one) => !mine.includes(one)).splice(0);
            if (frame.type === 'message') {
              others.push(bare as Mutable);
              mine.push(...others);
            }
            return [...foreign, frame];
          },
        };
      });
    })(),
  ],
  ['pong gives another ts', 'KEE1', ['KEE1'], of('pong', (frame) => payload(frame, { ts: Math.round(Number(frame.payload.ts ?? 0)) + 1 }))],
  [
    'pong comes with the next frame',
    'KEE1',
    ['KEE1'],
    between(() => {
      let late: Mutable | undefined;
      return {
        down(frame) {
          if (frame.type === 'pong' && frame.payload.ts !== undefined) {
            late = frame;
            return [];
          }
          const held = late === undefined ? [] : [late];
          late = undefined;
          return [...held, frame];
        },
      };
    }),
  ],
  ['agent.idle comes twice', 'TRN3', ['STR1'], of('agent.idle', (frame) => [frame, frame])],
  ['agent.idle never comes', 'TRN1', ['STR1'], of('agent.idle', () => undefined)],
  ['typing comes after idle', 'TRN4', ['STR1'], of('agent.idle', (frame) => [frame, { ...frame, type: 'typing', payload: { on: true } }])],
  ['tool.end is missing', 'TOO2', ['TOO1'], of('tool.end', () => undefined)],
  [
    'everybody gets the sender’s receipt',
    'RCP1',
    ['STR1'],
    (() => {
      const told: Mutable[] = [];
      return between(() => {
        const mine: Mutable[] = [];
        return {
          down(frame) {
            if (frame.type === 'read.receipt') {
              told.push(frame);
              mine.push(frame);
            }
            return frame.type === 'agent.idle' ? [...told.filter((one) => !mine.includes(one)), frame] : [frame];
          },
        };
      });
    })(),
  ],
  [
    'sync.done comes before the last that is replayed',
    'SYN10',
    ['SYN10'],
    between(() => {
      let held: Mutable | undefined;
      return {
        down(frame) {
          if (frame.type === 'sync.done') {
            const last = held;
            held = undefined;
            return last === undefined ? [frame] : [frame, last];
          }
          const before = held;
          held = frame.id === undefined && frame.cursor !== undefined ? frame : undefined;
          return [...(before === undefined ? [] : [before]), ...(held === undefined ? [frame] : [])];
        },
      };
    }),
  ],
  [
    'sync leaves out messages',
    'SYN3',
    ['SYN3'],
    each((frame) => (frame.type === 'message' && frame.id === undefined && frame.cursor !== undefined ? undefined : frame)),
  ],
  [
    'what is running is told again by sync',
    'SYN7',
    ['SYN7'],
    between(() => {
      let start: Mutable | undefined;
      return {
        down(frame) {
          if (frame.type === 'message.start' && frame.cursor === undefined) start = frame;
          return frame.type === 'sync.done' && start !== undefined ? [start, frame] : [frame];
        },
      };
    }),
  ],
  ['an unknown position is adopted silently', 'SYN9', ['SYN9'], of('sync.done', (frame) => payload(frame, { reset: undefined }))],
  [
    'a refused hello closes with 1000',
    'CLS2',
    ['HEL3'],
    between(() => ({ down: (frame) => [frame], closed: (code) => (code === 4401 ? 1000 : code) })),
  ],
  [
    'the worst hit comes first',
    'SEA3',
    ['SEA3'],
    of('search.results', (frame) => payload(frame, { hits: [...(frame.payload.hits as object[])].reverse() })),
  ],
  [
    'a snippet is cut where it happens to be',
    'SEA4',
    ['SEA4'],
    of('search.results', (frame) => {
      const hits = frame.payload.hits as { snippet: string }[];
      return payload(frame, { hits: hits.map((hit) => ({ ...hit, snippet: hit.snippet.replace(/^…../u, '…') })) });
    }),
  ],
  [
    'a search forgets its newest',
    'SEA6',
    ['SEA6'],
    of('search.results', (frame) => payload(frame, { hits: (frame.payload.hits as object[]).slice(1) })),
  ],
  ['frames do not begin with the version', 'ENV19', ['KEE1'], of('pong', ({ v, ...frame }) => ({ ...frame, v }))],
];

describe('a gateway with one thing broken is found out', () => {
  test.each(mutations)('%s: %s', async (_what, rule, only, break_) => {
    const results = await ask(break_, only);
    const found = results.filter(({ outcome }) => outcome === 'fail').map((one) => one.rule);
    expect(found).toContain(rule);
  });

  test('each of them is asked about what it breaks, and nothing is found without it', async () => {
    const only = [...new Set(mutations.flatMap(([, , one]) => one))];
    const results = await ask(undefined, only);
    expect(shown(results.filter(({ outcome }) => outcome === 'fail'))).toEqual([]);
    const passed = results.filter(({ outcome }) => outcome === 'pass').map(({ rule }) => rule);
    expect(mutations.map(([, rule]) => rule).filter((rule) => !passed.includes(rule))).toEqual([]);
  });
});
