import { createReadStream, createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** A refusal of the admin API, as it said it. */
export class ApiRefusal extends Error {
  override readonly name = 'ApiRefusal';
}

/** Calls of the admin API: `(method, path, body) → the JSON it answers`. @throws ApiRefusal */
export type Call = (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown) => Promise<unknown>;

export interface ApiClient {
  readonly call: Call;
  /** The answer into a file. */
  download(path: string, file: string): Promise<void>;
  /** A file as the body; the JSON it answers. */
  upload(path: string, file: string): Promise<unknown>;
}

/** @param url such as `http://127.0.0.1:8090` */
export function apiClient(url: string, token: string): ApiClient {
  const authorization = `Bearer ${token}`;
  const send = async (path: string, init: RequestInit & { duplex?: 'half' }): Promise<Response> => {
    let response: Response;
    try {
      response = await fetch(new URL(path, url), init);
    } catch (error) {
      throw new ApiRefusal(
        `${url} cannot be reached: ${((error as Error).cause as Error | undefined)?.message ?? (error as Error).message}`,
      );
    }
    if (response.ok) return response;
    const text = await response.text();
    throw new ApiRefusal(refusal(text) ?? `${response.status} ${response.statusText}`);
  };
  const answerOf = async (response: Response): Promise<unknown> => {
    const text = await response.text();
    return text === '' ? undefined : JSON.parse(text);
  };
  return {
    call: async (method, path, body) =>
      answerOf(
        await send(path, {
          method,
          headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        }),
      ),
    async download(path, file) {
      const { body } = await send(path, { headers: { authorization } });
      await pipeline(Readable.fromWeb(body as never), createWriteStream(file, { flags: 'wx', mode: 0o600 }));
    },
    upload: async (path, file) =>
      answerOf(
        await send(path, {
          method: 'POST',
          headers: { authorization, 'content-type': 'application/gzip' },
          body: Readable.toWeb(createReadStream(file)) as unknown as ReadableStream,
          duplex: 'half',
        }),
      ),
  };
}

function refusal(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as { error: { code: string; message: string } };
    return `${error.code}: ${error.message}`;
  } catch {
    return undefined;
  }
}
