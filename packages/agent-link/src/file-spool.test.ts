import { appendFileSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seededRandom } from '@iris/runtime/testing';
import { afterEach, describe, expect, test } from '@jest/globals';
import { fileSpool } from './file-spool.js';
import type { Kept } from './frame.js';
import type { Log } from './log.js';
import { applyRecord, type Spool, type SpoolRecord, type SpoolState } from './spool.js';

const folders: string[] = [];
const spools: Spool[] = [];
const errors: string[] = [];
const log: Log = { debug() {}, info() {}, warn() {}, error: (event) => void errors.push(event) };

const folder = (): string => {
  const dir = mkdtempSync(join(tmpdir(), 'iris-spool-'));
  folders.push(dir);
  return dir;
};
const open = (dir: string, compact_bytes?: number): Spool => {
  const spool = fileSpool(dir, { random: seededRandom(1).unit, log, ...(compact_bytes === undefined ? {} : { compact_bytes }) });
  spools.push(spool);
  return spool;
};
/** What a crash at this moment would leave: the folder as it is. */
const crashed = (dir: string): string => {
  const copy = folder();
  cpSync(dir, copy, { recursive: true });
  return copy;
};
const frame = (seq: number, text: string, more: Partial<Kept> = {}): SpoolRecord => ({
  k: 'out',
  f: { type: 'commentary', seq, turn_id: 'tn_1', chat_id: 'c', payload: { message_id: `m${seq}`, text }, ...more } as Kept,
});
const put = async (spool: Spool, ...records: SpoolRecord[]): Promise<void> => {
  for (const record of records) applyRecord(spool.state, record);
  await spool.append(records);
};
const plain = (state: SpoolState) => ({ ...state, unacked: [...state.unacked], turns: [...state.turns], ended: [...state.ended] });

afterEach(async () => {
  for (const spool of spools.splice(0)) await spool.close().catch(() => {});
  for (const dir of folders.splice(0)) rmSync(dir, { recursive: true });
  errors.length = 0;
});

describe('a spool in a folder', () => {
  test('is the same after a crash: sequences, unacked frames, open turns', async () => {
    const dir = folder();
    const spool = open(dir);
    await put(
      spool,
      { k: 'out', f: { type: 'turn.accepted', seq: 1, turn_id: 'tn_1', chat_id: 'c', thread_id: 't', payload: {} } },
      { k: 'in', seq: 4 },
      frame(2, 'zwei 🌈\n'),
      frame(3, 'drei'),
      { k: 'ack', seq: 2 },
    );
    const again = open(crashed(dir));
    expect(plain(again.state)).toEqual(plain(spool.state));
    expect(again.state).toMatchObject({ next_seq: 4, acked: 2, in_seq: 4 });
    expect(again.state.unacked.map((kept) => kept.seq)).toEqual([3]);
    expect([...again.state.turns]).toEqual([['tn_1', { chat_id: 'c', thread_id: 't' }]]);
    expect(statSync(join(dir, 'spool.jsonl')).mode & 0o077).toBe(0);
  });

  test('a turn is over when its end is acked, and stays known', async () => {
    const dir = folder();
    const spool = open(dir);
    await put(
      spool,
      { k: 'out', f: { type: 'turn.accepted', seq: 1, turn_id: 'tn_1', chat_id: 'c', payload: {} } },
      { k: 'out', f: { type: 'turn.end', seq: 2, turn_id: 'tn_1', chat_id: 'c', payload: { outcome: 'completed' } } },
    );
    expect([...open(crashed(dir)).state.turns]).toEqual([['tn_1', { chat_id: 'c', thread_id: null, end_seq: 2 }]]);
    await put(spool, { k: 'ack', seq: 2 });
    const again = open(crashed(dir)).state;
    expect([...again.turns]).toEqual([]);
    expect([...again.ended]).toEqual(['tn_1']);
  });

  test('a torn last line was never acted upon and is cut off', async () => {
    const dir = folder();
    const spool = open(dir);
    await put(spool, frame(1, 'one'));
    const whole = plain(spool.state);
    await put(spool, frame(2, 'two ü'));
    const bytes = statSync(join(dir, 'spool.jsonl')).size;
    for (const cut of [1, 5, 60]) {
      const copy = crashed(dir);
      truncateSync(join(copy, 'spool.jsonl'), bytes - cut);
      const again = open(copy);
      expect(plain(again.state)).toEqual(whole);
      await put(again, frame(2, 'another two'));
      expect(open(crashed(copy)).state.unacked.map((kept) => kept.payload)).toEqual([
        { message_id: 'm1', text: 'one' },
        { message_id: 'm2', text: 'another two' },
      ]);
    }
  });

  test('a damaged one is put aside and said, and a new installation begins', async () => {
    const dir = folder();
    await put(open(dir), frame(1, 'one'));
    for (const [damage, lines] of [
      ['half a line in the middle', '{"k":"in","se\n{"k":"in","seq":2}\n'],
      ['no head', undefined],
      ['another format', '{"k":"head","v":2}\n'],
    ] as const) {
      const copy = crashed(dir);
      const path = join(copy, 'spool.jsonl');
      if (lines === undefined) writeFileSync(path, '{"k":"in","seq":2}\n');
      else appendFileSync(path, lines);
      const before = readFileSync(path, 'utf8');
      const spool = open(copy);
      expect([damage, spool.state.next_seq, spool.state.in_seq]).toEqual([damage, 1, 0]);
      expect(readFileSync(`${path}.damaged`, 'utf8')).toBe(before);
    }
    expect(errors).toEqual(['agent_link.spool_damaged', 'agent_link.spool_damaged', 'agent_link.spool_damaged']);
  });

  test('an empty file, left by a crash of the very first start, is begun anew', () => {
    const dir = folder();
    writeFileSync(join(dir, 'spool.jsonl'), '');
    expect(open(dir).state.next_seq).toBe(1);
    expect(errors).toEqual([]);
  });

  test('stays small: what is acked goes, the rest and the sequences stay', async () => {
    const dir = folder();
    const spool = open(dir, 4_000);
    for (let seq = 1; seq <= 500; seq++) {
      await put(spool, frame(seq, 'x'.repeat(100)), { k: 'in', seq }, ...(seq > 3 ? [{ k: 'ack', seq: seq - 3 } as const] : []));
      expect(statSync(join(dir, 'spool.jsonl')).size).toBeLessThan(5_000);
    }
    const again = open(crashed(dir)).state;
    expect(again).toMatchObject({ next_seq: 501, acked: 497, in_seq: 500, install_id: spool.state.install_id });
    expect(again.unacked.map((kept) => kept.seq)).toEqual([498, 499, 500]);
  });

  test('grows with what is not acked, and keeps all of it', async () => {
    const dir = folder();
    const spool = open(dir, 2_000);
    for (let seq = 1; seq <= 200; seq++) await put(spool, frame(seq, 'y'.repeat(100)));
    expect(open(crashed(dir), 2_000).state.unacked.map((kept) => kept.seq)).toEqual(Array.from({ length: 200 }, (_, i) => i + 1));
  });

  test('belongs to one owner at a time; a dead one loses it', async () => {
    const dir = folder();
    const spool = open(dir);
    expect(() => open(dir)).toThrow('already open in this process');
    await spool.close();
    await open(dir).close();
    // Process 1 is always there, and never a dead agent of ours.
    writeFileSync(join(dir, 'lock.7'), '1\n');
    expect(() => open(dir)).toThrow('in use by process 1');
    writeFileSync(join(dir, 'lock.7'), '999999999\n');
    expect(open(dir).state.next_seq).toBe(1);
  });

  test('the lock of a version before holds it as well', () => {
    const dir = folder();
    writeFileSync(join(dir, 'lock'), '1\n');
    expect(() => open(dir)).toThrow('in use by process 1');
    writeFileSync(join(dir, 'lock'), '999999999\n');
    expect(open(dir).state.next_seq).toBe(1);
  });

  const linux = existsSync('/proc/self/stat') ? test : test.skip;
  linux('a number that another process has by now holds no spool', async () => {
    const dir = folder();
    // Process 1 began at another time than that.
    writeFileSync(join(dir, 'lock.1'), '1 999999999999\n');
    const spool = open(dir);
    expect(readFileSync(join(dir, 'lock.2'), 'utf8')).toMatch(new RegExp(`^${process.pid} \\d+ \\S+\\n$`));
    await spool.close();
  });
});
