import type { ToSession } from '@iris/bus';
import { notFound, RequestError } from '@iris/protocol';
import { tokenHash } from '@iris/store';
import { type Answer, type Context, ok } from './context.js';
import { answerPicker, isOpen } from './handlers/picker-select.js';
import { pickerAnswer } from './rules/picker-value.js';

/**
 * A picker is answered from its notification. The token is the whole of the right to do so: it names tenant, picker and device, and is good for
 * one answer. @throws RequestError `auth` for a token that is unknown, used or past its time; as `picker.select` for the rest
 */
export async function pushAnswer(
  { tenant_id, connection_id, n, body }: Extract<ToSession, { kind: 'request' }>,
  deadline: number,
  context: Context,
): Promise<Answer> {
  const { store, clock, emitter } = context;
  const { token, value } = JSON.parse(new TextDecoder().decode(body)) as { token: string; value: string | string[] };
  const key = `${connection_id}:${n}`;
  await emitter.emit({
    kind: 'change',
    tenant_id,
    deadline,
    place: 'alone',
    async run() {
      const refused = new RequestError('auth', 'token: not accepted');
      const known = await store.pushActions.find(tenant_id, tokenHash(token), key, clock.now());
      if (known === undefined) throw refused;
      const row = await store.pickers.get(tenant_id, known.picker_id);
      if (row === undefined || !(isOpen(row, context) || row.answered_by === key)) throw notFound('picker_id');
      // A value that is none does not use the token up.
      const answer = pickerAnswer(row.type, row.payload, value);
      if ((await store.pushActions.use(tenant_id, tokenHash(token), key, clock.now())) === undefined) throw refused;
      const device = await store.devices.get(tenant_id, known.device_id);
      if (device === undefined || device.revoked_at !== null) throw refused;
      const answered = await answerPicker(row, answer, key, context);
      if (answered === undefined) throw notFound('picker_id');
      return answered;
    },
  });
  return ok;
}
