import type { Usage, UsageDay } from '../store.js';
import type { Database } from './database.js';

const bounds = (ms: string) => `tenant_id = $1 AND ${ms} >= $2 AND ${ms} < $3`;

/** What stands, and what has gone since it was accepted: see migration 0013. */
const days = `
SELECT day, sum(user_messages)::int AS user_messages, sum(agent_messages)::int AS agent_messages, sum(turns)::int AS turns,
  sum(media_files)::int AS media_files, sum(media_bytes)::bigint AS media_bytes
FROM (
  SELECT iris_day(ts) AS day, (role = 'user')::int AS user_messages, (role <> 'user')::int AS agent_messages, 0 AS turns, 0 AS media_files, 0 AS media_bytes
  FROM message WHERE ${bounds('ts')} AND deleted_at IS NULL
  UNION ALL SELECT iris_day(created_at), 0, 0, 1, 0, 0 FROM turn WHERE ${bounds('created_at')}
  UNION ALL SELECT iris_day(created_at), 0, 0, 0, 1, size FROM media WHERE ${bounds('created_at')} AND state <> 'uploading'
  UNION ALL SELECT day, user_messages, agent_messages, turns, media_files, media_bytes FROM usage_day
    WHERE tenant_id = $1 AND day >= iris_day($2::bigint) AND day < iris_day($3::bigint)
) all_of_it GROUP BY day ORDER BY day`;

const day_ms = 24 * 60 * 60 * 1000;

export const prismaUsage = ({ sql }: Database): Usage => ({
  days: (tenant_id, from, to) => sql.rows<UsageDay>(days, [tenant_id, Date.parse(from), Date.parse(to) + day_ms]),
});
