import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import type { FakeWebPush, SealedDelivery } from './fake-webpush.js';

/**
 * The browser's side of a push service, in the protocol that Firefox speaks to Mozilla's (`dom.push.serverURL`): JSON over a WebSocket. What is posted
 * to a subscription's endpoint at {@link FakeWebPush} goes to the browser that made it, once it is there, until it has acknowledged it.
 */
export interface Autopush {
  /** `ws://127.0.0.1:port/` */
  readonly url: string;
  /** Every message of a browser. */
  readonly heard: readonly Message[];
  close(): Promise<void>;
}
interface Message {
  readonly messageType?: string;
  readonly uaid?: string;
  readonly channelID?: string;
  /** Of `register`: the application server's key, base64url. */
  readonly key?: string;
  readonly updates?: readonly { readonly channelID: string; readonly version: string; readonly code?: number }[];
}
interface Channel {
  readonly uaid: string;
  /** Newest per topic, not acknowledged yet. */
  readonly kept: Map<string, { readonly version: string; readonly body: Uint8Array }>;
}

/** @param options.base where {@link FakeWebPush} is asked, as senders reach it */
export async function serveAutopush(options: { webpush: FakeWebPush; base: string }): Promise<Autopush> {
  const { webpush, base } = options;
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  await new Promise<void>((resolve) => server.once('listening', resolve));
  const channels = new Map<string, Channel>();
  const browsers = new Map<string, WebSocket>();
  const heard: Message[] = [];

  const hand = (channelID: string, { version, body }: { version: string; body: Uint8Array }) => {
    const data = Buffer.from(body).toString('base64url');
    const headers = { encoding: 'aes128gcm' };
    say(browsers.get(channels.get(channelID)?.uaid ?? ''), { messageType: 'notification', channelID, version, data, headers });
  };
  const register = (socket: WebSocket, uaid: string, { channelID = '' }: Message) => {
    const channel: Channel = { uaid, kept: new Map() };
    channels.set(channelID, channel);
    webpush.attach(channelID, ({ topic, body }: SealedDelivery) => {
      const one = { version: randomUUID(), body };
      channel.kept.set(topic, one);
      hand(channelID, one);
    });
    say(socket, { messageType: 'register', channelID, status: 200, pushEndpoint: `${base}/push/${channelID}` });
  };
  const acknowledged = ({ updates = [] }: Message) => {
    for (const { channelID, version } of updates) {
      const kept = channels.get(channelID)?.kept ?? new Map<string, { version: string }>();
      for (const [topic, one] of kept) if (one.version === version) kept.delete(topic);
    }
  };

  server.on('connection', (socket) => {
    let uaid = '';
    socket.on('message', (data) => {
      const text = String(data);
      // A ping of its own kind.
      if (text === '{}') return socket.send('{}');
      const message = JSON.parse(text) as Message;
      heard.push(message);
      const { messageType, channelID = '' } = message;
      if (messageType === 'hello') {
        uaid = message.uaid || randomUUID().replaceAll('-', '');
        browsers.set(uaid, socket);
        say(socket, { messageType: 'hello', uaid, status: 200, use_webpush: true, broadcasts: {} });
        for (const [id, channel] of channels) if (channel.uaid === uaid) for (const one of channel.kept.values()) hand(id, one);
      } else if (messageType === 'register') register(socket, uaid, message);
      else if (messageType === 'ack') acknowledged(message);
      else if (messageType === 'unregister') {
        webpush.expire(channelID);
        channels.delete(channelID);
        say(socket, { messageType: 'unregister', channelID, status: 200 });
      }
    });
    socket.on('close', () => browsers.get(uaid) === socket && browsers.delete(uaid));
  });
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    heard,
    async close() {
      for (const socket of server.clients) socket.terminate();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const say = (socket: WebSocket | undefined, message: Readonly<Record<string, unknown>>): void => socket?.send(JSON.stringify(message));
