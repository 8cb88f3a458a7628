import type { Api, Routing } from '../control.js';
import { operators } from './admin-roles.js';

/** What is about the service as a whole. */
export function serviceRoutes(api: Api, { announcer, audit }: Routing): void {
  api.post(
    '/v1/restarting',
    {
      config: operators.change,
      schema: {
        tags: ['service'],
        summary: 'Tell every connected device that the service restarts, which apps show; nobody is disconnected by it',
      },
    },
    async (request, reply) => {
      await announcer.announce({ kind: 'restarting' });
      await audit(request, null, 'service.restarting', '');
      return reply.code(204).send();
    },
  );
}
