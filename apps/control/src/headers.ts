import type { Api } from './control.js';

/**
 * What every answer says to browsers: nobody frames it, nothing on it comes from elsewhere, what it says is kept nowhere. The docs page has its
 * one script and style from here.
 */
export function securityHeaders(api: Api): void {
  api.addHook('onSend', async (_request, reply) => {
    reply.headers({
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
      'strict-transport-security': 'max-age=31536000; includeSubDomains',
      'cache-control': 'no-store',
    });
  });
}
