-- What was accepted stays counted when it goes: whatever deletes rows adds them here, in the same transaction. What stands is counted where it stands.

CREATE TABLE "usage_day" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "day" TEXT COLLATE "C" NOT NULL,
    "user_messages" INTEGER NOT NULL DEFAULT 0,
    "agent_messages" INTEGER NOT NULL DEFAULT 0,
    "turns" INTEGER NOT NULL DEFAULT 0,
    "media_files" INTEGER NOT NULL DEFAULT 0,
    "media_bytes" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "usage_day_pkey" PRIMARY KEY ("tenant_id","day")
);

ALTER TABLE "usage_day" ADD CONSTRAINT "usage_day_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenant"("tenant_id") ON DELETE CASCADE ON UPDATE NO ACTION;

CREATE FUNCTION iris_day(ms BIGINT) RETURNS TEXT LANGUAGE sql IMMUTABLE AS $$
  SELECT to_char(to_timestamp(ms / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')
$$;

-- Rows go with their lane, and lanes with their tenant: of a tenant that is going nothing is counted. In order, so that two deletions never wait for each other.
CREATE FUNCTION iris_count_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_TABLE_NAME = 'message' THEN
    INSERT INTO usage_day AS u (tenant_id, day, user_messages, agent_messages)
    SELECT tenant_id, iris_day(ts), count(*) FILTER (WHERE role = 'user'), count(*) FILTER (WHERE role <> 'user') FROM gone g
    WHERE deleted_at IS NULL AND EXISTS (SELECT 1 FROM tenant t WHERE t.tenant_id = g.tenant_id) GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (tenant_id, day) DO UPDATE
    SET user_messages = u.user_messages + excluded.user_messages, agent_messages = u.agent_messages + excluded.agent_messages;
  ELSIF TG_TABLE_NAME = 'turn' THEN
    INSERT INTO usage_day AS u (tenant_id, day, turns)
    SELECT tenant_id, iris_day(created_at), count(*) FROM gone g
    WHERE EXISTS (SELECT 1 FROM tenant t WHERE t.tenant_id = g.tenant_id) GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (tenant_id, day) DO UPDATE SET turns = u.turns + excluded.turns;
  ELSE
    INSERT INTO usage_day AS u (tenant_id, day, media_files, media_bytes)
    SELECT tenant_id, iris_day(created_at), count(*), sum(size) FROM gone g
    WHERE state <> 'uploading' AND EXISTS (SELECT 1 FROM tenant t WHERE t.tenant_id = g.tenant_id) GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (tenant_id, day) DO UPDATE
    SET media_files = u.media_files + excluded.media_files, media_bytes = u.media_bytes + excluded.media_bytes;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER "count_gone" AFTER DELETE ON "message" REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION iris_count_gone();
CREATE TRIGGER "count_gone" AFTER DELETE ON "turn" REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION iris_count_gone();
CREATE TRIGGER "count_gone" AFTER DELETE ON "media" REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION iris_count_gone();
