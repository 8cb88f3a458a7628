/** A refusal of the admin API, as it said it. */
export class ApiRefusal extends Error {
  override readonly name = 'ApiRefusal';
}

/** Calls of the admin API: `(method, path, body) → the JSON it answers`. @throws ApiRefusal */
export type Call = (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown) => Promise<unknown>;

/** @param url such as `http://127.0.0.1:8090` */
export function apiClient(url: string, token: string): Call {
  return async (method, path, body) => {
    let response: Response;
    try {
      response = await fetch(new URL(path, url), {
        method,
        headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch (error) {
      throw new ApiRefusal(
        `${url} cannot be reached: ${((error as Error).cause as Error | undefined)?.message ?? (error as Error).message}`,
      );
    }
    const text = await response.text();
    if (response.ok) return text === '' ? undefined : JSON.parse(text);
    throw new ApiRefusal(refusal(text) ?? `${response.status} ${response.statusText}`);
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
