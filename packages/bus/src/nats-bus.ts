import { type Clock, type Log, type Meter, noMeter, type Random, silentLog, systemClock, systemRandom } from '@iris/runtime';
import { type ConnectionOptions, connect, errors, headers, type Msg, type Subscription as NatsSubscription } from '@nats-io/transport-node';
import { answerBytesMax, type Bus, BusClosed, BusTimeout, busBytesMax, NoResponders, type Subscription } from './bus.js';
import { assembler, cut, pieceOf, pieceText } from './pieces.js';
import { watchPace } from './slow-consumer.js';

export interface NatsBusOptions {
  /** `nats://` or `tls://` addresses, with user and password or a token in front of the host when the servers want them. */
  readonly servers: readonly string[];
  /** Shown in the server's list of connections. */
  readonly name?: string;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Log;
  /** Counts when this process is slow at taking what the bus brings. */
  readonly meter?: Meter;
}

const pieceHeader = 'Iris-Piece';
/** What headers and protocol may add to a payload that is counted against the server's limit. */
const headerRoom = 4 * 1024;
const pieceBytes = 512 * 1024;
/** A server that answers no ping for this long, though its socket is open, is given up: three intervals of 1.5 s. */
const pingInterval_ms = 1_500;
const pingsUnanswered = 2;
const dial_ms = 2_000;
const flush_ms = 2_000;

/**
 * The bus over NATS core. Resolves once a server was reached, however long that takes; from then on it reconnects for ever, with
 * short jittered waits. Messages over the server's `max_payload` (1 MB unless configured otherwise) go in pieces.
 * @throws when the servers refuse the credentials
 */
export async function natsBus({
  servers,
  name = 'iris',
  clock = systemClock,
  random = systemRandom,
  log = silentLog,
  meter = noMeter,
}: NatsBusOptions): Promise<Bus> {
  const nc = await connect({
    ...addressOf(servers),
    name,
    waitOnFirstConnect: true,
    maxReconnectAttempts: -1,
    // Everyone loses a server at the same instant: they must not all come back at the same instant too.
    reconnectDelayHandler: () => 100 + Math.floor(random.unit() * 400),
    pingInterval: pingInterval_ms,
    maxPingOut: pingsUnanswered,
    timeout: dial_ms,
    noAsyncTraces: true,
  });
  const sender = `${name}-${Buffer.from(random.bytes(9)).toString('base64url')}`;
  let connected = true;
  let closed = false;
  let sent = 0;
  const listeners = new Set<(connected: boolean) => void>();

  const setConnected = (now: boolean) => {
    if (now === connected) return;
    connected = now;
    for (const listener of [...listeners]) listener(now);
  };
  const server_id = () => nc.info?.server_id;
  const pace = watchPace({ clock, log, meter, ping: () => nc.flush(), bytesIn: () => nc.stats().inBytes, server_id: server_id() });
  void (async () => {
    /** Why the connection ends was said, or is ours to know. */
    let said = false;
    for await (const status of nc.status()) {
      if (status.type === 'disconnect') {
        log.warn('bus.disconnected', { server: status.server });
        pace.lost(said);
        setConnected(false);
      } else if (status.type === 'reconnect') {
        log.info('bus.reconnected', { server: status.server });
        said = false;
        pace.regained(server_id());
        setConnected(true);
      } else if (status.type === 'staleConnection' || status.type === 'ldm' || status.type === 'error') {
        said = true;
        if (status.type === 'error') log.error('bus.error', { error: status.error });
        else log.warn(status.type === 'ldm' ? 'bus.server_leaves' : 'bus.stale');
      }
    }
  })();

  /** All but the last piece go as plain messages; the last is for the caller to publish or request. */
  const sendPieces = (subject: string, data: Uint8Array) => {
    if (data.length > busBytesMax) throw new RangeError(`${data.length} bytes are more than one bus message carries`);
    const limit = nc.info?.max_payload ?? 1024 * 1024;
    if (data.length <= limit - headerRoom) return { data };
    const number = ++sent;
    const parts = cut(data, Math.min(pieceBytes, limit - headerRoom));
    const headersOf = (index: number) => {
      const all = headers();
      all.set(pieceHeader, pieceText({ sender, number, index, count: parts.length }));
      return all;
    };
    const last = parts.length - 1;
    for (let index = 0; index < last; index++) nc.publish(subject, parts[index], { headers: headersOf(index) });
    return { data: parts[last]!, headers: headersOf(last) };
  };

  const listen = (subject: string, handle: (data: Uint8Array, msg: Msg) => void): Subscription => {
    const assemble = assembler();
    const subscription: NatsSubscription = nc.subscribe(subject, {
      callback(error, msg) {
        if (error) {
          log.error('bus.subscription', { subject, error });
          return;
        }
        const piece = msg.headers?.get(pieceHeader);
        const whole = piece ? assemble(pieceOf(piece), plain(msg.data)) : msg.data;
        if (whole === undefined) return;
        const data = plain(whole);
        try {
          handle(data, msg);
        } catch (error) {
          // Thrown further it would end the reading of this connection for good, and with it everyone's subscriptions.
          log.error('bus.handler', { subject, error });
        }
      },
    });
    return { end: () => subscription.unsubscribe() };
  };

  return {
    publish(subject, data) {
      if (closed) return;
      // In pieces or not, it is cut first: what is too large throws whether or not the broker is there.
      if (!connected) {
        if (data.length > busBytesMax) throw new RangeError(`${data.length} bytes are more than one bus message carries`);
        return;
      }
      const { data: last, ...options } = sendPieces(subject, data);
      nc.publish(subject, last, options);
    },
    subscribe: (subject, handler) => listen(subject, handler),
    serve: (subject, handler) =>
      listen(subject, (data, msg) => {
        const answer = handler(data);
        if (answer.length > answerBytesMax) throw new RangeError(`an answer of ${answer.length} bytes to ${subject}`);
        msg.respond(answer);
      }),
    async request(subject, data, { timeout_ms }) {
      if (closed) throw new BusClosed(`request to ${subject}`);
      const { data: last, ...options } = sendPieces(subject, data);
      try {
        return plain((await nc.request(subject, last, { timeout: timeout_ms, ...options })).data);
      } catch (error) {
        if (closed || nc.isClosed()) throw new BusClosed(`request to ${subject}`, { cause: error });
        if (error instanceof errors.NoRespondersError || (error instanceof Error && error.cause instanceof errors.NoRespondersError))
          throw new NoResponders(subject, { cause: error });
        throw new BusTimeout(`request to ${subject}`, { cause: error });
      }
    },
    async flush() {
      if (closed) throw new BusClosed('flush');
      let timer: { cancel(): void } | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = clock.after(flush_ms, () => reject(new BusTimeout('flush')));
      });
      try {
        await Promise.race([nc.flush(), late]);
      } catch (error) {
        if (closed) throw new BusClosed('flush', { cause: error });
        throw error instanceof BusTimeout ? error : new BusTimeout('flush', { cause: error });
      } finally {
        timer?.cancel();
      }
    },
    get connected() {
      return connected && !closed;
    },
    onConnected(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async close() {
      if (closed) return;
      closed = true;
      pace.stop();
      listeners.clear();
      await nc.close();
    },
  };
}

/** The client hands over Buffers, and the `slice` of these is no copy: a frame that somebody keeps would keep all that was read with it. */
const plain = ({ buffer, byteOffset, length }: Uint8Array): Uint8Array => new Uint8Array(buffer, byteOffset, length);

/** The client wants credentials beside the addresses, not in them. */
function addressOf(servers: readonly string[]): ConnectionOptions {
  const urls = servers.map((server) => new URL(server.includes('://') ? server : `nats://${server}`));
  const { username = '', password = '' } = urls[0] ?? {};
  return {
    servers: urls.map((url) => url.host),
    ...(urls.some((url) => url.protocol === 'tls:') ? { tls: {} } : {}),
    ...(password !== '' ? { user: decodeURIComponent(username), pass: decodeURIComponent(password) } : {}),
    ...(password === '' && username !== '' ? { token: decodeURIComponent(username) } : {}),
  };
}
