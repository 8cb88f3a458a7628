import type { PushFrameRow, PushLedgerRow } from '@iris/store';

/** Why a phone did, or did not, buzz: one sentence for a person. */
export function explanation(row: PushLedgerRow | undefined, frame: PushFrameRow | undefined): string {
  if (row === undefined && frame === undefined) return 'No: the frame is not worth a push, or older than the ledger is kept.';
  if (row === undefined)
    return frame?.decided === true
      ? 'No: the device was not there, or was revoked, when it was decided.'
      : 'Not yet: nobody has decided; it is connected and may confirm the frame still, or a worker has not looked.';
  const told = row.answer === null ? '' : ` ${row.provider ?? 'The provider'} answered ${row.answer}.`;
  const tries = row.attempts === 0 ? '' : ` after ${row.attempts} ${row.attempts === 1 ? 'attempt' : 'attempts'}`;
  switch (row.state) {
    case 'sent':
      return `Yes: ${row.provider} accepted it${tries}.${row.withdrawn_at === null ? '' : ' The notification was taken back or replaced since.'}`;
    case 'collapsed':
      return `Together with the frame at ${row.with_cursor}, in one push of its lane.`;
    case 'skipped':
      return `No: ${reasons[row.why ?? ''] ?? row.why}.${told}`;
    case 'failed':
      return `No: ${row.why}${tries}.${told}`;
    case 'sending':
      return `It is being sent.${told}`;
    case 'pending':
      return `It waits${row.why === null ? '' : ` (${row.why})`}${tries}.${told}`;
  }
}

const reasons: Readonly<Record<string, string>> = {
  confirmed: 'the device had the frame already',
  read: 'it was read on a device before',
  answered: 'the question was answered or closed before',
  deleted: 'it was deleted before',
  hello: 'the device came back before it was sent',
  'its own': 'the device caused it itself',
  'too old': 'it was too old by then',
  muted: 'the device has muted the lane',
  'quiet hours': 'it came during quiet hours',
  'no target': 'nobody can carry a push to the device',
  'with its picker': 'the question that it announces is pushed itself',
  revoked: 'the device was revoked',
  'a newer push of its lane': 'a newer push of its lane had been accepted before its turn came',
};
