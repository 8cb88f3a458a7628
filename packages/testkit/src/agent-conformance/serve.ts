import { type ScriptedGateway, scriptedGateway } from '@iris/agent-link/testing';
import { WebSocketServer } from 'ws';

/** The scripted gateway on a port of this machine, for agents that dial. */
export async function serveGateway({ port, token }: { port: number; token: string }): Promise<{
  readonly gateway: ScriptedGateway;
  readonly url: string;
  close(): Promise<void>;
}> {
  const gateway = scriptedGateway({ clock: { now: () => Date.now() }, carry: (deliver) => void setImmediate(deliver) });
  const server = new WebSocketServer({
    host: '127.0.0.1',
    port,
    path: '/agent',
    handleProtocols: (offered) => (offered.has('iris-agent.v1') ? 'iris-agent.v1' : false),
    maxPayload: 8 * 1024 * 1024,
  });
  await new Promise<void>((resolve, reject) => {
    server.once('listening', resolve);
    server.once('error', reject);
  });
  server.on('connection', (socket, request) => {
    const early: string[] = [];
    let open = false;
    if (/^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1] !== token) return socket.close(4401, 'auth');
    const link = gateway.net.connect(
      '',
      { token, subprotocol: 'iris-agent.v1' },
      {
        open() {
          open = true;
          for (const text of early.splice(0)) link.send(text);
        },
        message: (text) => socket.send(text),
        closed(code, reason) {
          if (code === 1006) socket.terminate();
          else socket.close(code, reason);
        },
      },
    );
    socket.on('message', (data, binary) => {
      if (binary) return socket.close(4400, 'binary frames are not spoken here');
      const text = data.toString();
      if (open) link.send(text);
      else early.push(text);
    });
    socket.on('close', () => link.terminate());
    socket.on('error', () => {});
  });
  const address = server.address() as { port: number };
  return {
    gateway,
    url: `ws://127.0.0.1:${address.port}/agent`,
    close() {
      for (const socket of server.clients) socket.terminate();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
