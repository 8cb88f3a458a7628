import { type Engine, EnginePanic } from './engine.js';

interface Request {
  readonly id: number;
  readonly method: string;
  readonly params?: Record<string, unknown>;
}

const engineFailed = 4466;

/**
 * JSON-RPC 2.0, one message a line, as the stock engine speaks it on its standard streams.
 * Requests are answered in the order they come.
 * @throws when the engine panicked, after saying so to whoever asked
 */
export async function serveRpc(lines: AsyncIterable<string>, engine: Engine, send: (line: string) => void): Promise<void> {
  let ownId = 1;
  for await (const line of lines) {
    const request = parse(line);
    if (!request) continue;
    try {
      const result = await engine(request.method, withConfigDir(request));
      const printed = request.method === 'diff' ? (result as { stdout?: unknown } | null)?.stdout : undefined;
      // The command line prints what the engine asks it to print, not the result.
      if (typeof printed === 'string') send(JSON.stringify({ jsonrpc: '2.0', id: ownId++, method: 'print', params: { content: printed } }));
      send(JSON.stringify({ jsonrpc: '2.0', id: request.id, result: result ?? null }));
    } catch (error) {
      const { message, code } = error as { message?: unknown; code?: unknown };
      const is_panic = error instanceof EnginePanic;
      const data = { is_panic, message: String(message ?? error), meta: {}, error_code: typeof code === 'string' ? code : '' };
      const failed = { code: engineFailed, message: 'An error happened. Check the data field for details.', data };
      send(JSON.stringify({ jsonrpc: '2.0', id: request.id, error: failed }));
      if (is_panic) throw error;
    }
  }
}

/** Answers to our own `print` have no method; they and what is no JSON are passed over. */
function parse(line: string): Request | undefined {
  try {
    const message = JSON.parse(line) as Partial<Request>;
    return typeof message.method === 'string' && message.id !== undefined ? (message as Request) : undefined;
  } catch {
    return undefined;
  }
}

/** `diff` against the configured database: the stock engine takes the folder from its own working directory. */
function withConfigDir({ method, params = {} }: Request): Record<string, unknown> {
  if (method !== 'diff') return params;
  const side = (target: unknown): unknown =>
    (target as { tag?: unknown } | undefined)?.tag === 'schemaDatasource' ? { configDir: process.cwd(), ...(target as object) } : target;
  return { ...params, from: side(params.from), to: side(params.to) };
}
