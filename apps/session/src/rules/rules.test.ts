import type { AgentId, InstallId, MessageId, TenantId, TurnId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import { commandWord, completions, isCommand, isStop, mergeCatalogs } from './command.js';
import { agentMessageId, clientKey, isMessageId, messageIdOf, turnIdOf } from './ids.js';
import { fittedName, keptName } from './names.js';
import { pickerAnswer, takesText } from './picker-value.js';
import { derivedTitle } from './title.js';

describe('names', () => {
  test.each([
    ['  Reports  ', 'Reports'],
    ['two\nlines', 'two lines'],
    ['שלום עולם', 'שלום עולם'],
    ['مرحبا', 'مرحبا'],
    ['👨‍👩‍👧‍👦', '👨‍👩‍👧‍👦'],
    ['evil\u202etxt.exe', 'eviltxt.exe'],
    ['x'.repeat(128), 'x'.repeat(128)],
    ['😀'.repeat(128), '😀'.repeat(128)],
  ])('CHA10: %j is kept as %j', (name, kept) => {
    expect(keptName(name)).toBe(kept);
  });
  test.each([[''], ['   '], ['\u200b\u200b'], ['\u202e'], ['\n'], ['x'.repeat(129)], ['😀'.repeat(129)]])(
    'CHA10: %j is refused',
    (name) => {
      expect(() => keptName(name)).toThrow('name: ');
    },
  );
  test('CHA10: an agent’s name is made to fit, whole characters only', () => {
    expect(fittedName('😀'.repeat(200))).toBe('😀'.repeat(128));
  });
});

describe('titles', () => {
  test.each([
    ['Deploy the service', 'Deploy the service'],
    ['# Plan for **today**\nand more', 'Plan for today'],
    ['\n\n---\n> quoted [link](https://example.org) and `code`', 'quoted link and code'],
    ['- [ ] buy milk', '[ ] buy milk'],
    ['snake_case_names stay', 'snake_case_names stay'],
    ['<b>bold</b> text', 'bold text'],
    ['```ts\nconst a = 1', 'const a = 1'],
    ['!!!', 'New thread'],
    ['2 * 3 * 4 = 24', '2 * 3 * 4 = 24'],
  ])('MSG17: %j is called %j', (text, title) => {
    expect(derivedTitle(text)).toBe(title);
  });
  test('MSG17: it is cut at a word, or between characters where there are no words, at 60', () => {
    const long = derivedTitle('Please look at the logs of the second server and tell me why it stopped');
    expect(long).toBe('Please look at the logs of the second server and tell me why');
    expect(derivedTitle(`${'x'.repeat(29)} ${'y'.repeat(30)} z`)).toBe(`${'x'.repeat(29)} ${'y'.repeat(30)}`);
    expect(derivedTitle(`see https://example.org/${'y'.repeat(80)}`)).toBe('see');
    expect(derivedTitle('中'.repeat(100))).toBe('中'.repeat(60));
    expect(derivedTitle('😀'.repeat(100))).toBe('😀'.repeat(60));
    // Seven code points each: the ninth would be split.
    expect(derivedTitle('👨‍👩‍👧‍👦'.repeat(18))).toBe('👨‍👩‍👧‍👦'.repeat(8));
  });
});

describe('commands', () => {
  const catalog = [
    { name: '/model', description: 'Switch', aliases: ['/m'] },
    { name: '/new', description: 'New', aliases: ['/reset'] },
  ];
  test.each([
    ['/model qwen', '/model'],
    ['  /Model', '/model'],
    ['/usr/bin is full', undefined],
    ['/', undefined],
    ['//', undefined],
    ['say /model', undefined],
    ['/1', undefined],
    ['/stop now', '/stop'],
  ])('MSG13: the command word of %j is %j', (text, word) => {
    expect(commandWord(text)).toBe(word);
  });
  test('MSG13: a command is what the catalog knows, by name or alias', () => {
    expect(isCommand('/M x', catalog)).toBe(true);
    expect(isCommand('/reset', catalog)).toBe(true);
    expect(isCommand('/unknown', catalog)).toBe(false);
    expect(isCommand('/__proto__', catalog)).toBe(false);
    expect(isStop('/STOP please')).toBe(true);
    expect(isStop('/stopwatch')).toBe(false);
  });
  test('CMD3: completions by name first, then by alias; the slash may be missing', () => {
    expect(completions('/m', catalog).map(({ name }) => name)).toEqual(['/model']);
    expect(completions('re', catalog).map(({ name }) => name)).toEqual(['/new']);
    expect(completions('', catalog)).toHaveLength(2);
    expect(completions('/x', catalog)).toEqual([]);
  });
  test('CMD1: of several agents the first one’s entry counts', () => {
    const merged = mergeCatalogs([
      catalog,
      [
        { name: '/MODEL', description: 'Other' },
        { name: '/other', description: 'Other' },
      ],
    ]);
    expect(merged.map(({ name }) => name)).toEqual(['/model', '/new', '/other']);
  });
});

describe('picker answers', () => {
  const choices = [
    { value: 'a', label: 'A' },
    { value: 'b', label: 'B' },
  ];
  test('PIC9: one of the offered', () => {
    for (const type of ['picker.choice', 'picker.approval', 'picker.confirm']) {
      expect(pickerAnswer(type, { choices }, 'b')).toBe('b');
      expect(() => pickerAnswer(type, { choices }, 'c')).toThrow('value: ');
      expect(() => pickerAnswer(type, { choices }, ['a'])).toThrow('value: ');
      expect(() => pickerAnswer(type, { choices }, '__proto__')).toThrow('value: ');
    }
  });
  test('PIC9: for a model, provider and model', () => {
    const offer = { providers: [{ id: 'local', label: 'L', models: [{ id: 'qwen/3', label: 'Q' }] }] };
    expect(pickerAnswer('picker.model', offer, 'local/qwen/3')).toBe('local/qwen/3');
    expect(() => pickerAnswer('picker.model', offer, 'local')).toThrow('value: ');
    expect(() => pickerAnswer('picker.model', offer, 'other/qwen/3')).toThrow('value: ');
  });
  test('PIC9: for a clarify any text; several only where several are asked for', () => {
    expect(pickerAnswer('picker.clarify', { choices }, 'something else')).toBe('something else');
    expect(pickerAnswer('picker.clarify', { choices, multi: true }, ['a', 'b'])).toEqual(['a', 'b']);
    expect(() => pickerAnswer('picker.clarify', { choices }, ['a', 'b'])).toThrow('value: ');
    expect(() => pickerAnswer('picker.clarify', {}, '')).toThrow('value: ');
    expect(takesText('picker.clarify', { allow_text: true })).toBe(true);
    expect(takesText('picker.clarify', { allow_text: false })).toBe(false);
    expect(takesText('picker.choice', { allow_text: true })).toBe(false);
  });
});

describe('ids', () => {
  const namer = { tenant_id: 't' as TenantId, agent_id: 'a' as AgentId, install_id: 'i' as InstallId, turn_id: 'tn' as TurnId };
  test('LNK25: an agent’s id is mapped alike each time, and apart by tenant, agent, install and turn', () => {
    const id = agentMessageId(namer, 'm1');
    expect(agentMessageId(namer, 'm1')).toBe(id);
    const others = [
      agentMessageId({ ...namer, tenant_id: 'u' as TenantId }, 'm1'),
      agentMessageId({ ...namer, agent_id: 'b' as AgentId }, 'm1'),
      agentMessageId({ ...namer, install_id: 'j' as InstallId }, 'm1'),
      agentMessageId({ ...namer, turn_id: undefined }, 'm1'),
      agentMessageId(namer, 'm2'),
    ];
    expect(new Set([id, ...others]).size).toBe(6);
    expect([id, ...others].every(isMessageId)).toBe(true);
  });
  test('MSG4: a request’s message is named by its key', () => {
    const id = messageIdOf('t' as TenantId, clientKey('d', 'r', 0));
    expect(id).toBe(messageIdOf('t' as TenantId, clientKey('d', 'r', 0)));
    expect(id).not.toBe(messageIdOf('u' as TenantId, clientKey('d', 'r', 0)));
    expect(clientKey('d\nr', '', 0)).not.toBe(clientKey('d', 'r\n', 0));
    expect(turnIdOf(id)).toBe(`tn_${id.slice(2)}`);
    expect(isMessageId('__proto__' as MessageId)).toBe(false);
  });
});
