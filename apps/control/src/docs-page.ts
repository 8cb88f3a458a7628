import type { Api } from './control.js';

const page = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Iris Gateway admin API</title>
<link rel="stylesheet" href="docs/style.css"><script type="module" src="docs/script.js"></script></head>
<body><header><h1>Iris Gateway admin API</h1><label>Token <input id="token" type="password" autocomplete="off" placeholder="Bearer token, kept in this page alone"></label>
<button id="sign-in" hidden>Sign in</button><span id="signed"></span>
<a href="openapi.json">openapi.json</a></header><main id="operations"><p>Loading…</p></main></body></html>`;

const style = `
body{font:15px/1.5 system-ui,sans-serif;margin:0;color:#1c2430;background:#f6f7f9}
header{display:flex;gap:1.5rem;align-items:center;flex-wrap:wrap;padding:.8rem 1.5rem;background:#fff;border-bottom:1px solid #dde1e7;position:sticky;top:0}
h1{font-size:1.1rem;margin:0}h2{margin:1.5rem 0 .5rem;font-size:1rem;text-transform:capitalize}main{max-width:60rem;margin:0 auto;padding:0 1.5rem 4rem}
details{background:#fff;border:1px solid #dde1e7;border-radius:6px;margin:.4rem 0;padding:.4rem .8rem}summary{cursor:pointer}
summary code{font-weight:600}.method{display:inline-block;width:4.5rem;font:600 12px monospace;color:#2456a6}
label{display:block;margin:.4rem 0}input,textarea{font:13px monospace;padding:.3rem;border:1px solid #b9c1cc;border-radius:4px;min-width:20rem}
textarea{width:100%;min-height:6rem;box-sizing:border-box}pre{background:#10161f;color:#dbe4f0;padding:.8rem;border-radius:6px;overflow:auto;max-height:24rem}
button{font:inherit;padding:.3rem 1rem;border:0;border-radius:4px;background:#2456a6;color:#fff;cursor:pointer}`;

/** Builds the page from the document, by the DOM alone: nothing of it is ever taken for HTML. */
const script = `
const add = (parent, name, text, more = {}) => { const one = document.createElement(name); for (const key of ['className', 'value', 'hidden', 'placeholder']) if (key in more) one[key] = more[key]; if (text !== undefined) one.textContent = text; parent.append(one); return one; };
const main = document.getElementById('operations');
const encoded = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
const here = location.origin + location.pathname;
const signIn = async () => {
  const entrance = await (await fetch('docs/sign-in')).json().catch(() => ({}));
  if (!entrance.authorization_endpoint) return;
  const button = document.getElementById('sign-in');
  button.hidden = false;
  button.addEventListener('click', async () => {
    const fresh = () => encoded(crypto.getRandomValues(new Uint8Array(32)));
    const [state, code_verifier] = [fresh(), fresh()];
    sessionStorage.setItem('sign-in', JSON.stringify({ state, code_verifier }));
    const code_challenge = encoded(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(code_verifier)));
    const url = new URL(entrance.authorization_endpoint);
    const asked = { response_type: 'code', client_id: entrance.client_id, scope: entrance.scope, redirect_uri: here, state, code_challenge, code_challenge_method: 'S256' };
    for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value);
    location.assign(url);
  });
  const back = new URLSearchParams(location.search);
  const begun = JSON.parse(sessionStorage.getItem('sign-in') ?? 'null');
  sessionStorage.removeItem('sign-in');
  if (!back.has('code') && !back.has('error')) return;
  history.replaceState(null, '', here);
  const said = document.getElementById('signed');
  if (begun === null || back.get('state') !== begun.state || !back.has('code')) { said.textContent = 'Not signed in: ' + (back.get('error') ?? 'not begun here'); return; }
  const response = await fetch('docs/sign-in', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ code: back.get('code'), code_verifier: begun.code_verifier, redirect_uri: here }) });
  const answer = await response.json();
  if (response.ok) document.getElementById('token').value = answer.token;
  said.textContent = response.ok ? 'Signed in' : 'Not signed in: ' + answer.error.message;
};
signIn();
const api = await (await fetch('openapi.json')).json();
main.replaceChildren();
const groups = new Map();
for (const [path, methods] of Object.entries(api.paths)) for (const [method, operation] of Object.entries(methods)) {
  const tag = operation.tags?.[0] ?? 'other';
  groups.set(tag, [...(groups.get(tag) ?? []), { path, method, operation }]);
}
const example = (schema) => Object.fromEntries(Object.entries(schema?.properties ?? {}).filter(([name]) => schema.required?.includes(name)).map(([name, one]) => [name, one.type === 'integer' ? 0 : one.anyOf?.[0]?.const ?? '']));
for (const [tag, operations] of groups) {
  add(main, 'h2', tag);
  for (const { path, method, operation } of operations) {
    const box = add(main, 'details');
    const summary = add(box, 'summary');
    add(summary, 'span', method.toUpperCase(), { className: 'method' });
    add(summary, 'code', path);
    summary.append(' — ' + (operation.summary ?? ''));
    const inputs = (operation.parameters ?? []).map((parameter) => {
      const label = add(box, 'label', parameter.name + (parameter.required ? ' * ' : ' '));
      return { parameter, input: add(label, 'input', undefined, { placeholder: parameter.schema?.description ?? parameter.description ?? '' }) };
    });
    const body = operation.requestBody?.content?.['application/json']?.schema;
    const text = body && add(box, 'textarea', undefined, { value: JSON.stringify(example(body), null, 2) });
    if (body) { const shape = add(box, 'details'); add(shape, 'summary', 'schema'); add(shape, 'pre', JSON.stringify(body, null, 2)); }
    const button = add(box, 'button', 'Send');
    const shown = add(box, 'pre', '', { hidden: true });
    button.addEventListener('click', async () => {
      let url = path.replace(/^\\//, '');
      const query = new URLSearchParams();
      for (const { parameter, input } of inputs) {
        if (parameter.in === 'path') url = url.replace('{' + parameter.name + '}', encodeURIComponent(input.value));
        else if (input.value !== '') query.set(parameter.name, input.value);
      }
      const token = document.getElementById('token').value;
      const headers = { ...(token ? { authorization: 'Bearer ' + token } : {}), ...(text ? { 'content-type': 'application/json' } : {}) };
      shown.hidden = false;
      try {
        const response = await fetch(url + (query.size ? '?' + query : ''), { method: method.toUpperCase(), headers, ...(text ? { body: text.value } : {}) });
        const type = response.headers.get('content-type') ?? '';
        const said = type.includes('json') ? JSON.stringify(await response.json(), null, 2) : type.includes('gzip') ? (await response.blob()).size + ' bytes' : await response.text();
        shown.textContent = response.status + ' ' + response.statusText + '\\n' + said;
      } catch (error) { shown.textContent = String(error); }
    });
  }
}`;

/** `/docs`: the document as a page on which every call can be made. Needs no token; its calls do. */
export function docsPage(api: Api): void {
  const hidden = { schema: { hide: true } };
  api.get('/docs', hidden, async (_request, reply) => reply.type('text/html; charset=utf-8').send(page));
  api.get('/docs/style.css', hidden, async (_request, reply) => reply.type('text/css; charset=utf-8').send(style));
  api.get('/docs/script.js', hidden, async (_request, reply) => reply.type('text/javascript; charset=utf-8').send(script));
}
