import WebSocket from 'ws';
import { closing } from './frame.js';
import type { Connect } from './socket.js';

/** The gateway's frames are at most 1 MiB; what is larger is not from a gateway. */
const max_bytes = 2 * 1024 * 1024;

/** Dials with `ws`, the token in the `Authorization` header. */
export const wsConnect: Connect = (url, { token, subprotocol }, events) => {
  const socket = new WebSocket(url, subprotocol, {
    headers: { authorization: `Bearer ${token}` },
    perMessageDeflate: false,
    maxPayload: max_bytes,
  });
  let over = false;
  let fault = '';
  const end = (code: number, reason: string) => {
    if (over) return;
    over = true;
    events.closed(code, reason);
  };
  socket.on('open', () => events.open());
  socket.on('message', (data, binary) => {
    if (!binary) events.message(data.toString());
  });
  socket.on('unexpected-response', (request, response) => {
    request.destroy();
    const status = response.statusCode ?? 0;
    end(status === 401 ? closing.auth : status === 403 ? closing.revoked : closing.lost, `HTTP ${status}`);
  });
  socket.on('error', (error) => {
    fault = error.message;
  });
  socket.on('close', (code, reason) => end(code === 1005 ? closing.normal : code, reason.toString() || fault));
  return {
    send(text) {
      // Errors of a send come as `close`; without a callback `ws` would throw on a socket that is closing.
      if (socket.readyState === WebSocket.OPEN) socket.send(text, () => {});
    },
    close: (code, reason) => socket.close(code, reason),
    terminate: () => socket.terminate(),
    buffered: () => socket.bufferedAmount,
  };
};
