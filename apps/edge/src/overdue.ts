import type { ConnectionId } from '@iris/protocol';
import { agentOverdue } from './agent/deliver.js';
import type { EdgeContext } from './context.js';
import type { InFlight } from './forward.js';
import { unanswered } from './knock.js';
import { close, refuse } from './outbound.js';
import { answerOverdue } from './push-answer.js';

/** A request was not answered by its deadline: nobody asks for it any more. */
export function overdue(edge: EdgeContext, connection_id: ConnectionId, request: InFlight) {
  const answering = edge.answering.get(connection_id);
  if (answering !== undefined) return answerOverdue(answering);
  const connection = edge.connections.get(connection_id);
  if (connection === undefined) return;
  if (request.type === 'hello') unanswered(edge, connection);
  edge.log.warn('edge.overdue', { type: request.type, peer: connection.peer });
  if (connection.peer === 'agent') return agentOverdue(edge, connection, request);
  if (connection.state.kind === 'closed') return;
  if (request.id !== undefined || request.type === 'hello') refuse(edge, connection, request.id, 'internal', 'no answer in time');
  // Without an answer to its hello there is nothing it can do here.
  if (request.type === 'hello') close(edge, connection, 'full', 'no session');
}
