import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Bus, BusClosed, busBytesMax, NoResponders, type Subscription } from './bus.js';

/** Connections to one broker, for {@link describeBus}. */
export interface BusSetting {
  connect(): Promise<Bus>;
  end(): Promise<void>;
}

/** What every bus does, whichever carries it. */
export function describeBus(name: string, make: () => Promise<BusSetting>): void {
  describe(`bus: ${name}`, () => {
    let setting: BusSetting;
    let a: Bus;
    let b: Bus;
    let count = 0;
    /** A subject of its own for each test, so that none hears another. */
    const fresh = () => `iris.test.${process.pid}.${++count}`;
    const bytes = (...values: number[]) => new Uint8Array(values);

    beforeAll(async () => {
      setting = await make();
      [a, b] = await Promise.all([setting.connect(), setting.connect()]);
    });
    afterAll(async () => {
      await Promise.all([a?.close(), b?.close()]);
      await setting?.end();
    });

    /** The first `wanted` messages of a subject, and whatever came with them. */
    const collect = async (bus: Bus, subject: string, wanted: number) => {
      const heard: Uint8Array[] = [];
      let subscription: Subscription | undefined;
      const all = new Promise<Uint8Array[]>((resolve) => {
        subscription = bus.subscribe(subject, (data) => {
          heard.push(data.slice());
          if (heard.length === wanted) resolve(heard);
        });
      });
      await bus.flush();
      return { heard, all, subscription: subscription! };
    };

    test('a message reaches every subscriber once, the publisher too, byte for byte', async () => {
      const subject = fresh();
      const [first, second, own] = await Promise.all([collect(b, subject, 1), collect(b, subject, 1), collect(a, subject, 1)]);
      const every = Uint8Array.from({ length: 256 }, (_, i) => i);
      a.publish(subject, every);
      for (const { all } of [first, second, own]) expect((await all).map((data) => [...data])).toEqual([[...every]]);
      const empty = await collect(b, subject, 1);
      a.publish(subject, bytes());
      expect((await empty.all)[0]).toHaveLength(0);
    });

    test('who slices what it hears has a copy, and keeps nothing of all that came with it', async () => {
      for (const data of [bytes(1, 2, 3), new Uint8Array(1_500_000)]) {
        const subject = fresh();
        const shared = new Promise<boolean>((resolve) => {
          b.subscribe(subject, (heard) => resolve(heard.slice().buffer === heard.buffer));
        });
        await b.flush();
        a.publish(subject, data);
        expect(await shared).toBe(false);
      }
      const asked = fresh();
      b.serve(asked, () => bytes(4, 5, 6));
      await b.flush();
      const answer = await a.request(asked, bytes(1), { timeout_ms: 5_000 });
      expect([[...answer], answer.slice().buffer === answer.buffer]).toEqual([[4, 5, 6], false]);
    });

    test('one publisher is heard in order', async () => {
      const subject = fresh();
      const { all } = await collect(b, subject, 2_000);
      for (let i = 0; i < 2_000; i++) a.publish(subject, bytes(i >> 8, i & 255));
      expect((await all).map((data) => data[0]! * 256 + data[1]!)).toEqual(Array.from({ length: 2_000 }, (_, i) => i));
    });

    test('subjects are apart, and an ended subscription hears nothing', async () => {
      const [one, other] = [fresh(), fresh()];
      const heardOne = await collect(b, one, 1);
      const heardOther = await collect(b, other, 2);
      const ended = await collect(b, one, 1);
      ended.subscription.end();
      await b.flush();
      a.publish(one, bytes(1));
      a.publish(other, bytes(2));
      a.publish(other, bytes(3));
      await Promise.all([heardOne.all, heardOther.all]);
      expect(heardOne.heard.map((data) => [...data])).toEqual([[1]]);
      expect(heardOther.heard.map((data) => [...data])).toEqual([[2], [3]]);
      expect(ended.heard).toEqual([]);
    });

    test('a request gets the answer of who serves, each its own, an empty one too', async () => {
      const subject = fresh();
      const serving = b.serve(subject, (data) => (data.length === 0 ? bytes() : bytes(...data, data.length)));
      await b.flush();
      expect(await a.request(subject, bytes(), { timeout_ms: 10_000 })).toHaveLength(0);
      const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => a.request(subject, bytes(i), { timeout_ms: 10_000 })));
      expect(answers.map((data) => [...data])).toEqual(Array.from({ length: 200 }, (_, i) => [i, 1]));
      serving.end();
    });

    test('requests of one connection are handled in the order they were sent', async () => {
      const subject = fresh();
      const handled: number[] = [];
      b.serve(subject, (data) => {
        handled.push(data[0]!);
        return bytes();
      });
      await b.flush();
      await Promise.all(Array.from({ length: 100 }, (_, i) => a.request(subject, bytes(i), { timeout_ms: 10_000 })));
      expect(handled).toEqual(Array.from({ length: 100 }, (_, i) => i));
    });

    test('nobody serves: said at once, before, after `end` and after `close`', async () => {
      const subject = fresh();
      const ask = () => a.request(subject, bytes(1), { timeout_ms: 600_000 });
      await expect(ask()).rejects.toBeInstanceOf(NoResponders);
      const serving = b.serve(subject, () => bytes(9));
      await b.flush();
      expect([...(await ask())]).toEqual([9]);
      serving.end();
      await b.flush();
      await expect(ask()).rejects.toBeInstanceOf(NoResponders);
      const gone = await setting.connect();
      gone.serve(subject, () => bytes(9));
      await gone.flush();
      expect([...(await ask())]).toEqual([9]);
      await gone.close();
      await expect(ask()).rejects.toBeInstanceOf(NoResponders);
    });

    test('large messages arrive whole and in their place', async () => {
      const subject = fresh();
      const { all } = await collect(b, subject, 4);
      const large = new Uint8Array(busBytesMax).map((_, i) => (i * 31) & 255);
      a.publish(subject, bytes(1));
      a.publish(subject, large);
      a.publish(subject, large.subarray(0, 1_200_000));
      a.publish(subject, bytes(2));
      const heard = await all;
      expect(heard.map((data) => data.length)).toEqual([1, busBytesMax, 1_200_000, 1]);
      expect(Buffer.compare(heard[1]!, large)).toBe(0);
      expect(Buffer.compare(heard[2]!, large.subarray(0, 1_200_000))).toBe(0);
      const served = fresh();
      b.serve(served, (data) => bytes(data.length >> 16, data[data.length - 1]!));
      await b.flush();
      const answer = await a.request(served, large.subarray(0, 3_000_000), { timeout_ms: 20_000 });
      expect([...answer]).toEqual([3_000_000 >> 16, large[2_999_999]]);
    });

    test('a message larger than the bus carries is refused where it is sent', async () => {
      const data = new Uint8Array(busBytesMax + 1);
      expect(() => a.publish(fresh(), data)).toThrow(RangeError);
      await expect(a.request(fresh(), data, { timeout_ms: 1_000 })).rejects.toBeInstanceOf(RangeError);
    });

    test('what the sender does with its bytes after `flush` does not show', async () => {
      const subject = fresh();
      const { all } = await collect(b, subject, 1);
      const data = bytes(1, 2, 3);
      a.publish(subject, data);
      await a.flush();
      data.fill(0);
      expect([...(await all)[0]!]).toEqual([1, 2, 3]);
    });

    test('after close nothing is sent, asked or heard, and closing twice is fine', async () => {
      const subject = fresh();
      const bus = await setting.connect();
      expect(bus.connected).toBe(true);
      b.serve(subject, () => bytes());
      await b.flush();
      await bus.close();
      await bus.close();
      expect(bus.connected).toBe(false);
      bus.publish(subject, bytes(1));
      await expect(bus.request(subject, bytes(1), { timeout_ms: 1_000 })).rejects.toBeInstanceOf(BusClosed);
      await expect(bus.flush()).rejects.toBeInstanceOf(BusClosed);
    });
  });
}
