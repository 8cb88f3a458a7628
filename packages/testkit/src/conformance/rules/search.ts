import type { TestDevice } from '../../test-device.js';
import { type Check, like, must, need, refused } from '../check.js';

interface Hit {
  readonly message_id: string;
  readonly chat_id: string;
  readonly thread_id: string | null;
  readonly role: string;
  readonly snippet: string;
  readonly ts: number;
}

async function find(device: TestDevice, query: string, scope: Record<string, unknown> = {}): Promise<Hit[]> {
  const answer = await device.request('search', { query, scope: 'all', ...scope });
  if (answer.payload.code === 'unsupported') throw need('search');
  like('SEA5', answer, { type: 'search.results', payload: { query, hits: Array.isArray } });
  return answer.payload.hits as unknown as Hit[];
}
const ids = async (device: TestDevice, query: string): Promise<string[]> => (await find(device, query)).map(({ message_id }) => message_id);

/** Search. A word that nobody has said before marks what each check says. */
export const search: readonly Check[] = [
  {
    rules: ['SEA1', 'SEA6'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const mark = ctx.text('q').split(' ').join('');
      const say = async (text: string) => (await device.send(`${mark} ${text}`, ctx.lane)).payload.message_id!;
      const a = await say('Please deploy the café service tonight, СПАСИБО');
      must('SEA6', (await ids(device, mark)).join() === a, 'a message that was acknowledged is not found');
      const b = await say('nothing to redeploy here, 東京都の天気 สวัสดีชาวโลก');
      const wanted = [
        ['deploy', [a, b]],
        ['DEPLOY café', [a]],
        ['CAFE', [a]],
        ['спасибо', [a]],
        ['"deploy the"', [a]],
        ['"the deploy"', []],
        ['deploy -tonight', [b]],
        ['-"the café" deploy', [b]],
        ['東京', [b]],
        ['天', [b]],
        ['ชาว', [b]],
        ['eplo', [a, b]],
        ['ervic', [a]],
        ['deploy nowhere', []],
      ] as const;
      for (const [query, expected] of wanted) {
        const got = await ids(device, `${mark} ${query}`);
        must('SEA1', [...got].sort().join() === [...expected].sort().join(), `${query} finds ${got.join()} and not ${expected.join()}`);
      }
      return 'words, phrases, exclusion, scripts without spaces, parts, accents and case, at once';
    },
  },
  {
    rules: ['SEA3'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const mark = ctx.text('q').split(' ').join('');
      const say = async (text: string) => (await device.send(text, ctx.lane)).payload.message_id!;
      const row = await say(`a ${mark} fox ran`);
      const words = await say(`the fox is ${mark}`);
      const parts = await say(`outfoxed and ${mark}`);
      const newer = await say(`fox, said ${mark}`);
      const answer = await device.request('search', { query: `${mark} fox`, scope: 'all' });
      if (answer.payload.code === 'unsupported') throw need('search');
      const got = (answer.payload.hits as unknown as Hit[]).map(({ message_id }) => message_id);
      must('SEA3', got.join() === [row, newer, words, parts].join(), `the order is ${got.join()}`);
      must('SEA3', answer.payload.has_more === false, `has_more is ${String(answer.payload.has_more)}`);
      return 'in a row, then the newer of two with the words, the older, then parts; has_more false';
    },
  },
  {
    rules: ['SEA4'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const mark = ctx.text('q').split(' ').join('');
      const families = '👨‍👩‍👧'.repeat(70);
      await device.send(`${families} ${mark} ${families}`, ctx.lane);
      const [hit] = await find(device, mark);
      const snippet = hit?.snippet ?? '';
      must('SEA4', [...snippet].length <= 160, `the snippet has ${[...snippet].length} code points`);
      must('SEA4', snippet.includes(mark), `the match is not in ${JSON.stringify(snippet)}`);
      const rest = snippet.replaceAll('👨‍👩‍👧', '').replace(mark, '').replace(/[… ]/g, '');
      must('SEA4', rest === '', `a character is cut: ${JSON.stringify(rest)}`);
      like('SEA4', { type: 'hit', payload: { ...hit } }, { payload: { role: 'user', ...ctx.lane, ts: Number.isSafeInteger } });
      return `${[...snippet].length} code points around the match`;
    },
  },
  {
    rules: ['SEA5'],
    async run(ctx) {
      const device = await ctx.join('phone');
      for (const query of ['', '   ', '"', '""', '-x']) must('SEA5', (await find(device, query)).length === 0, `${query} has hits`);
      const odd = [
        '((',
        '& | !',
        "'; DROP TABLE message; --",
        '%_*',
        'team:foo',
        `'":*`,
        '&!',
        'a <-> b',
        '\\',
        '🦊'.repeat(99),
        '\u0000\ud800',
      ];
      for (const query of odd) {
        const answer = await device.request('search', { query, scope: 'all' });
        like('SEA5', answer, { type: 'search.results' });
      }
      return 'nothing finds nothing; whatever is no syntax is no error';
    },
  },
  {
    rules: ['SEA2'],
    async run(ctx) {
      const device = await ctx.join('phone');
      refused('SEA2', await device.request('search', { query: 'x', scope: 'chat' }), 'unsupported', 'chat_id');
      return 'scope chat without chat_id is refused';
    },
  },
];
