import { RequestError, rateLimited } from '@iris/protocol';
import { Type } from 'typebox';
import type { Api } from './control.js';
import type { Oidc } from './oidc.js';

const Code = Type.Object({
  code: Type.String({ minLength: 1, maxLength: 4_096 }),
  code_verifier: Type.String({ minLength: 43, maxLength: 128 }),
  redirect_uri: Type.String({ minLength: 1, maxLength: 2_048 }),
});
/** Each asks the issuer something, and anyone may begin one. */
const atOnce = 8;

/**
 * `/docs/sign-in`: where the docs page signs in, and where it brings the code that it got there. The token that comes of it is the page's, and is
 * given only when it opens the API.
 */
export function docsSignIn(api: Api, oidc: Oidc | undefined): void {
  const hidden = { schema: { hide: true } };
  let underWay = 0;
  const limited = async <R>(work: () => Promise<R>): Promise<R> => {
    if (underWay >= atOnce) throw rateLimited('too many sign in at once', 1_000);
    underWay++;
    try {
      return await work();
    } finally {
      underWay--;
    }
  };
  api.get('/docs/sign-in', hidden, async () => (oidc === undefined ? {} : limited(() => oidc.entrance())));
  api.post('/docs/sign-in', { schema: { hide: true, body: Code } }, async (request) => {
    const token = oidc === undefined ? undefined : await limited(() => oidc.exchange(request.body));
    if (token === undefined) throw new RequestError('auth', 'not accepted');
    return { token };
  });
}
