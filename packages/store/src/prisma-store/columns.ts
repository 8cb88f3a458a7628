/** The columns of each row of rows.ts, for statements that are written out; what the store keeps for itself is not among them. */
const list = (names: string): { readonly list: string; of(alias: string): string } => {
  const all = names.split(' ');
  return { list: all.join(', '), of: (alias) => all.map((name) => `${alias}.${name}`).join(', ') };
};

export const columns = {
  tenant: list('tenant_id name state quotas cursor_reserved created_at'),
  device: list('tenant_id device_id name label caps token_id watermark last_pushed_cursor created_at last_seen_at revoked_at'),
  channel: list('tenant_id chat_id thread_id kind name is_default auto agent_id created_at'),
  message: list(
    'tenant_id message_id chat_id thread_id role text reasoning media reply_to model tokens runtime ts cursor idempotency_key client_ref device_id turn_id steer interrupted late own_id',
  ),
  turn: list(
    'tenant_id turn_id chat_id thread_id agent_id message_id kind state outcome attempt boot_id stop_requested device_id connection_id position created_at accepted_at ended_at',
  ),
  agent: list(
    'tenant_id agent_id name is_default install_id boot_id epoch link_edge_id link_connection_id link_seen_at in_seq out_seq caps commands created_at',
  ),
  pushTarget: list('tenant_id device_id kind address keys registration registered_at'),
  pushFrame: list('tenant_id cursor class chat_id thread_id message_id picker_id title body except_device_id at decided'),
  pushLedger: list(
    'tenant_id device_id cursor class chat_id thread_id state why with_cursor covers provider answer attempts due_at decided_at sent_at withdrawn_at',
  ),
  picker: list(
    'tenant_id picker_id chat_id thread_id type payload turn_id agent_id agent_picker_id state value answered_by expires_at created_at',
  ),
} as const;
