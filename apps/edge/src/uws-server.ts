import uws, { type HttpRequest, type HttpResponse, type TemplatedApp, type us_listen_socket } from 'uWebSockets.js';
import { limits } from '@iris/protocol';
import { type Clock, systemClock } from '@iris/runtime';
import { type HttpExchange, httpExchange } from './http-exchange.js';
import { clientAddress, networks, originAllowed } from './peer.js';
import { answerBytes, type HttpReply } from './push-answer.js';
import { relayBearerLength } from './relay/auth.js';
import type { Opening, Socket, SocketEvents, SocketGroups } from './socket.js';
import { largeAtOnce, strangers } from './strangers.js';
import { bodyOf, refuse, reply } from './uws-http.js';
import { type Entry, turns, UwsSocket } from './uws-socket.js';

export interface UwsServerOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** What an `Origin` header may say; requests without one are not from browsers and pass. Default: the host that was asked for. */
  readonly origins?: readonly string[] | 'same-host';
  /** Addresses and networks (`10.0.0.0/8`) whose `X-Forwarded-For` is believed. */
  readonly trusted_proxies?: readonly string[];
  /** Such a proxy says who the peer is in front of the connection (PROXY protocol, version 2), as balancers of connections do. */
  readonly proxy_protocol?: boolean;
  /**
   * Bytes of one message that are read at all. Larger ones are cut off without a close code (1006), as uWebSockets.js does it; smaller
   * ones that are too large all the same are read, thrown away and told 1009. So it stands well above the protocol's limits. A message is held
   * until it is whole: of many strangers only a few may send as much, the others what the protocol allows. See {@link strangers}.
   */
  readonly maxPayload?: number;
  /** Sockets of devices that may be open without having said hello, and a quarter of it each of agents and relays. Default: 4,096. */
  readonly strangers?: number;
  /** What `POST /push/answer` is answered with. Absent: there is no such path. */
  readonly answerPush?: (body: string, address: string) => Promise<HttpReply>;
  /** PEM files, to end TLS here. */
  readonly tls?: { readonly cert_file: string; readonly key_file: string };
  readonly clock?: Clock;
}

export interface UwsServer {
  readonly port: number;
  readonly groups: SocketGroups;
  /** Accept no more; sockets that are open stay. */
  stopListening(): void;
  /** Drop everything. */
  close(): void;
}

const agentProtocol = 'iris-agent.v1';
/** uWebSockets.js skips a socket that has more than this waiting; the edge's own mark comes long before, and nothing may be skipped. */
const neverSkip = 0x7fffffff;
const drainedBelow = 16 * 1024;

/**
 * Serve `/ws`, `/agent` and `/relay`. The edge needs the groups and this needs the edge: pass `(socket, opening) => edge.accept(socket, opening)` and
 * make the edge from the result at once; no socket opens before the promise has been handed over.
 * @throws when the port is taken
 */
export async function startUwsServer(
  options: UwsServerOptions,
  accept: (socket: Socket, opening: Opening) => SocketEvents,
  file?: (exchange: HttpExchange) => void,
): Promise<UwsServer> {
  const {
    host,
    port,
    origins = 'same-host',
    trusted_proxies = [],
    proxy_protocol = false,
    maxPayload = 8 * 1024 * 1024,
    tls,
    clock = systemClock,
  } = options;
  const proxies = networks(trusted_proxies);
  const app = tls ? uws.SSLApp({ cert_file_name: tls.cert_file, key_file_name: tls.key_file }) : uws.App();
  const turn = turns(clock);
  /** The way here as `X-Forwarded-For` has it: what a balancer says of the connection is nearer than what was said in it. */
  const forwardedFor = (req: HttpRequest, res: HttpResponse): string => {
    const proxied = proxy_protocol ? text(res.getProxiedRemoteAddressAsText()) : '';
    return [req.getHeader('x-forwarded-for'), proxied].filter((one) => one !== '').join(', ');
  };

  // An agent's frame may be four times as large as a device's.
  const most = options.strangers ?? 4_096;
  const come = { '/ws': strangers(most), '/agent': strangers(most / 4), '/relay': strangers(most / 4) };
  /** A route is what has a largest message: one that does not take a request leaves it to the next that its pattern fits. */
  const routes = [
    { pattern: '/ws', path: '/ws', bytes: maxPayload, large: true },
    { pattern: '/agent', path: '/agent', bytes: maxPayload, large: true },
    { pattern: '/relay', path: '/relay', bytes: maxPayload, large: true },
    { pattern: '/:any', path: '/ws', bytes: Math.min(maxPayload, limits.frame_bytes), large: false },
    { pattern: '/*', path: '/agent', bytes: Math.min(maxPayload, limits.agent_frame_bytes), large: false },
    { pattern: '/:other', path: '/relay', bytes: Math.min(maxPayload, limits.agent_frame_bytes), large: false },
  ] as const;
  for (const { pattern, path, bytes, large } of routes) {
    app.ws<Entry>(pattern, {
      compression: uws.DISABLED,
      maxPayloadLength: bytes,
      maxBackpressure: neverSkip,
      // The edge pings, and knows who is silent.
      idleTimeout: 0,
      sendPingsAutomatically: false,
      upgrade(res, req, context) {
        const here = come[path];
        if (req.getUrl() !== path || (large && here.size >= largeAtOnce)) return void req.setYield(true);
        if (here.full) return refuse(res, '503 Service Unavailable');
        const origin = req.getHeader('origin');
        const protocols = req.getHeader('sec-websocket-protocol');
        const offered = protocols === '' ? [] : protocols.split(',').map((one) => one.trim());
        if (origin !== '' && !originAllowed(origin, req.getHeader('host'), origins)) return refuse(res, '403 Forbidden');
        if (path === '/agent' && offered.length > 0 && !offered.includes(agentProtocol)) return refuse(res, '400 Bad Request');
        const token = /^Bearer +(\S+)$/i.exec(req.getHeader('authorization'))?.[1];
        const longest = path === '/relay' ? relayBearerLength : limits.token_length;
        if (token !== undefined && token.length > longest) return refuse(res, '401 Unauthorized');
        const peer = text(res.getRemoteAddressAsText());
        const address = clientAddress(peer, forwardedFor(req, res), proxies);
        res.upgrade<Entry>(
          { opening: { path, address, ...(token === undefined ? {} : { token }) }, socket: undefined, events: undefined },
          req.getHeader('sec-websocket-key'),
          path === '/agent' && offered.length > 0 ? agentProtocol : '',
          '',
          context,
        );
      },
      open(ws) {
        const entry = ws.getUserData();
        entry.socket = new UwsSocket(ws, app, turn, come[path]);
        const events = accept(entry.socket, entry.opening);
        // Closed while it was being accepted: nobody was there yet to be told.
        if (entry.socket.isClosed) events.closed();
        else entry.events = events;
      },
      message(ws, message, binary) {
        ws.getUserData().events?.message(new Uint8Array(message), binary);
      },
      // A peer that pings is alive; what its ping says is its own.
      ping(ws) {
        ws.getUserData().events?.pong(nothing);
      },
      pong(ws, message) {
        ws.getUserData().events?.pong(new Uint8Array(message));
      },
      drain(ws) {
        if (ws.getBufferedAmount() <= drainedBelow) ws.getUserData().events?.drained();
      },
      close(ws) {
        const entry = ws.getUserData();
        entry.socket?.forget();
        entry.events?.closed();
      },
    });
  }
  const { answerPush } = options;
  if (answerPush !== undefined) {
    // The token in it is all the right there is: whoever has it may ask from any page.
    const open = { 'access-control-allow-origin': '*', 'access-control-allow-headers': 'content-type', 'access-control-max-age': '86400' };
    app.options('/push/answer', (res) => void reply(res, '204 No Content', open, ''));
    app.post('/push/answer', (res, req) => {
      const address = clientAddress(text(res.getRemoteAddressAsText()), forwardedFor(req, res), proxies);
      let aborted = false;
      res.onAborted(() => {
        aborted = true;
      });
      bodyOf(res, answerBytes, (body) => {
        if (body === undefined) return void reply(res, '413 Payload Too Large', open, '');
        void answerPush(body, address).then(({ status, body: said }) => {
          if (!aborted) reply(res, String(status), { ...open, 'content-type': 'application/json' }, said);
        });
      });
    });
  }
  if (file !== undefined) {
    app.get('/media/*', (res, req) => file(httpExchange(res, req, 'get')));
    app.head('/media/*', (res, req) => file(httpExchange(res, req, 'head')));
    app.put('/media/*', (res, req) => file(httpExchange(res, req, 'put')));
    app.options('/media/*', (res) => void reply(res, '204 No Content', mediaFromPages, ''));
  }
  app.any('/*', (res) => void refuse(res, '404 Not Found'));

  const listening = await listen(app, host, port);
  let open: us_listen_socket | undefined = listening;
  const stopListening = () => {
    if (open !== undefined) uws.us_listen_socket_close(open);
    open = undefined;
  };
  return {
    port: uws.us_socket_local_port(listening as never),
    groups: { publish: (group, data) => void app.publish(group, data, false) },
    stopListening,
    close() {
      stopListening();
      app.close();
    },
  };
}

/** A link is all the right there is: whoever has it may use it from any page. */
const mediaFromPages = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET, HEAD, PUT',
  'access-control-allow-headers': 'content-type, content-range, range',
  'access-control-max-age': '86400',
};
const nothing = new Uint8Array();
const text = (data: ArrayBuffer): string => Buffer.from(data).toString();

/** The address only this process may have: two that share one would share its sockets by chance. */
function listen(app: TemplatedApp, host: string, port: number): Promise<us_listen_socket> {
  return new Promise((resolve, reject) => {
    const done = (socket: us_listen_socket | false) => {
      if (socket === false) reject(new Error(`${host}:${port} cannot be listened on: it is taken, or not ours`));
      else resolve(socket);
    };
    // The host comes first and the option after the port: so the addon takes them, though its types do not say it.
    (app.listen as unknown as (host: string, port: number, options: number, done: (socket: us_listen_socket | false) => void) => void).call(
      app,
      host,
      port,
      exclusivePort,
      done,
    );
  });
}
const exclusivePort = 1;
