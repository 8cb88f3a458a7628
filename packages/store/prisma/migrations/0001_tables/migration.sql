-- All tables. See schema.prisma for what they hold; here is what it cannot say.
--
-- Ids compare bytewise, whatever the database's locale: faster, and the order of a page of tenants is the same everywhere.
-- "message" has 16 partitions by tenant. More can be made later by moving one partition's rows at a time.

CREATE TABLE "tenant" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "name" TEXT NOT NULL,
    "state" TEXT NOT NULL DEFAULT 'active',
    "quotas" JSONB NOT NULL DEFAULT '{}',
    "cursor_reserved" BIGINT NOT NULL DEFAULT 0,
    "last_number" INTEGER NOT NULL DEFAULT 0,
    "created_at" BIGINT NOT NULL,

    CONSTRAINT "tenant_pkey" PRIMARY KEY ("tenant_id")
) WITH (fillfactor = 80);

CREATE TABLE "token" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "token_id" TEXT COLLATE "C" NOT NULL,
    "kind" TEXT NOT NULL,
    "hash" TEXT COLLATE "C" NOT NULL,
    "device_id" TEXT COLLATE "C",
    "agent_id" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "revoked_at" BIGINT,

    CONSTRAINT "token_pkey" PRIMARY KEY ("tenant_id","token_id")
);

CREATE TABLE "device" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "device_id" TEXT COLLATE "C" NOT NULL,
    "name" TEXT NOT NULL,
    "caps" JSONB NOT NULL,
    "token_id" TEXT COLLATE "C" NOT NULL,
    "fcm_token" TEXT COLLATE "C",
    "ntfy_topic" TEXT COLLATE "C",
    "watermark" BIGINT NOT NULL DEFAULT 0,
    "last_pushed_cursor" BIGINT NOT NULL DEFAULT 0,
    "created_at" BIGINT NOT NULL,
    "last_seen_at" BIGINT NOT NULL,
    "revoked_at" BIGINT,

    CONSTRAINT "device_pkey" PRIMARY KEY ("tenant_id","device_id")
) WITH (fillfactor = 80);

CREATE TABLE "channel" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "chat_id" TEXT COLLATE "C" NOT NULL,
    "thread_id" TEXT COLLATE "C" NOT NULL DEFAULT '',
    "kind" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "is_default" BOOLEAN NOT NULL DEFAULT false,
    "auto" BOOLEAN NOT NULL,
    "agent_id" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "number" INTEGER NOT NULL,
    "idempotency_key" TEXT COLLATE "C",

    CONSTRAINT "channel_pkey" PRIMARY KEY ("tenant_id","chat_id","thread_id")
);

CREATE TABLE "message" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "message_id" TEXT COLLATE "C" NOT NULL,
    "chat_id" TEXT COLLATE "C" NOT NULL,
    "thread_id" TEXT COLLATE "C" NOT NULL DEFAULT '',
    "role" TEXT NOT NULL,
    "text" TEXT NOT NULL,
    "reasoning" TEXT,
    "media" JSONB,
    "reply_to" TEXT COLLATE "C",
    "model" TEXT,
    "tokens" BIGINT,
    "runtime" JSONB,
    "ts" BIGINT NOT NULL,
    "cursor" BIGINT,
    "idempotency_key" TEXT COLLATE "C",
    "client_ref" TEXT COLLATE "C",
    "device_id" TEXT COLLATE "C",
    "turn_id" TEXT COLLATE "C",
    "steer" BOOLEAN NOT NULL DEFAULT false,
    "interrupted" BOOLEAN NOT NULL DEFAULT false,
    "late" BOOLEAN NOT NULL DEFAULT false,
    "seq" BIGSERIAL NOT NULL,
    "search_text" TEXT NOT NULL,
    "deleted_at" BIGINT,

    CONSTRAINT "message_pkey" PRIMARY KEY ("tenant_id","message_id")
) PARTITION BY HASH ("tenant_id");

CREATE TABLE "message_p00" PARTITION OF "message" FOR VALUES WITH (MODULUS 16, REMAINDER 0);
CREATE TABLE "message_p01" PARTITION OF "message" FOR VALUES WITH (MODULUS 16, REMAINDER 1);
CREATE TABLE "message_p02" PARTITION OF "message" FOR VALUES WITH (MODULUS 16, REMAINDER 2);
CREATE TABLE "message_p03" PARTITION OF "message" FOR VALUES WITH (MODULUS 16, REMAINDER 3);
CREATE TABLE "message_p04" PARTITION OF "message" FOR VALUES WITH (MODULUS 16, REMAINDER 4);
CREATE TABLE "message_p05" PARTITION OF "message" FOR VALUES WITH (MODULUS 16, REMAINDER 5);
CREATE TABLE "message_p06" PARTITION OF "message" FOR VALUES WITH (MODULUS 16, REMAINDER 6);
CREATE TABLE "message_p07" PARTITION OF "message" FOR VALUES WITH (MODULUS 16, REMAINDER 7);
CREATE TABLE "message_p08" PARTITION OF "message" FOR VALUES WITH (MODULUS 16, REMAINDER 8);
CREATE TABLE "message_p09" PARTITION OF "message" FOR VALUES WITH (MODULUS 16, REMAINDER 9);
CREATE TABLE "message_p10" PARTITION OF "message" FOR VALUES WITH (MODULUS 16, REMAINDER 10);
CREATE TABLE "message_p11" PARTITION OF "message" FOR VALUES WITH (MODULUS 16, REMAINDER 11);
CREATE TABLE "message_p12" PARTITION OF "message" FOR VALUES WITH (MODULUS 16, REMAINDER 12);
CREATE TABLE "message_p13" PARTITION OF "message" FOR VALUES WITH (MODULUS 16, REMAINDER 13);
CREATE TABLE "message_p14" PARTITION OF "message" FOR VALUES WITH (MODULUS 16, REMAINDER 14);
CREATE TABLE "message_p15" PARTITION OF "message" FOR VALUES WITH (MODULUS 16, REMAINDER 15);

CREATE TABLE "message_media" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "media_id" TEXT COLLATE "C" NOT NULL,
    "message_id" TEXT COLLATE "C" NOT NULL,

    CONSTRAINT "message_media_pkey" PRIMARY KEY ("tenant_id","media_id","message_id")
);

CREATE TABLE "turn" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "turn_id" TEXT COLLATE "C" NOT NULL,
    "chat_id" TEXT COLLATE "C" NOT NULL,
    "thread_id" TEXT COLLATE "C" NOT NULL DEFAULT '',
    "agent_id" TEXT COLLATE "C",
    "message_id" TEXT COLLATE "C" NOT NULL,
    "kind" TEXT NOT NULL,
    "state" TEXT NOT NULL DEFAULT 'queued',
    "outcome" TEXT,
    "attempt" INTEGER NOT NULL DEFAULT 1,
    "boot_id" TEXT COLLATE "C",
    "stop_requested" BOOLEAN NOT NULL DEFAULT false,
    "device_id" TEXT COLLATE "C",
    "connection_id" TEXT COLLATE "C",
    "position" BIGSERIAL NOT NULL,
    "created_at" BIGINT NOT NULL,
    "accepted_at" BIGINT,
    "ended_at" BIGINT,

    CONSTRAINT "turn_pkey" PRIMARY KEY ("tenant_id","turn_id")
);

CREATE TABLE "agent" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "agent_id" TEXT COLLATE "C" NOT NULL,
    "name" TEXT NOT NULL,
    "is_default" BOOLEAN NOT NULL,
    "install_id" TEXT COLLATE "C",
    "boot_id" TEXT COLLATE "C",
    "epoch" INTEGER NOT NULL DEFAULT 0,
    "link_edge_id" TEXT COLLATE "C",
    "link_connection_id" TEXT COLLATE "C",
    "link_seen_at" BIGINT,
    "in_seq" BIGINT NOT NULL DEFAULT 0,
    "out_seq" BIGINT NOT NULL DEFAULT 0,
    "caps" JSONB NOT NULL DEFAULT '{}',
    "commands" JSONB NOT NULL DEFAULT '[]',
    "created_at" BIGINT NOT NULL,

    CONSTRAINT "agent_pkey" PRIMARY KEY ("tenant_id","agent_id")
) WITH (fillfactor = 80);

CREATE TABLE "agent_frame" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "agent_id" TEXT COLLATE "C" NOT NULL,
    "seq" BIGINT NOT NULL,
    "frame" JSONB NOT NULL,
    "key" TEXT COLLATE "C",

    CONSTRAINT "agent_frame_pkey" PRIMARY KEY ("tenant_id","agent_id","seq")
);

CREATE TABLE "agent_frame_key" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "agent_id" TEXT COLLATE "C" NOT NULL,
    "key" TEXT COLLATE "C" NOT NULL,
    "at" BIGINT NOT NULL,

    CONSTRAINT "agent_frame_key_pkey" PRIMARY KEY ("tenant_id","agent_id","key")
);

CREATE TABLE "picker" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "picker_id" TEXT COLLATE "C" NOT NULL,
    "chat_id" TEXT COLLATE "C" NOT NULL,
    "thread_id" TEXT COLLATE "C" NOT NULL DEFAULT '',
    "type" TEXT NOT NULL,
    "payload" JSONB NOT NULL,
    "turn_id" TEXT COLLATE "C",
    "agent_id" TEXT COLLATE "C",
    "agent_picker_id" TEXT COLLATE "C",
    "state" TEXT NOT NULL,
    "value" JSONB,
    "answered_by" TEXT COLLATE "C",
    "expires_at" BIGINT,
    "created_at" BIGINT NOT NULL,

    CONSTRAINT "picker_pkey" PRIMARY KEY ("tenant_id","picker_id")
);

CREATE TABLE "read_state" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "device_id" TEXT COLLATE "C" NOT NULL,
    "chat_id" TEXT COLLATE "C" NOT NULL,
    "thread_id" TEXT COLLATE "C" NOT NULL DEFAULT '',
    "message_id" TEXT COLLATE "C" NOT NULL,
    "cursor" BIGINT NOT NULL,

    CONSTRAINT "read_state_pkey" PRIMARY KEY ("tenant_id","device_id","chat_id","thread_id")
);

CREATE TABLE "receipt" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "device_id" TEXT COLLATE "C" NOT NULL,
    "message_id" TEXT COLLATE "C" NOT NULL,
    "chat_id" TEXT COLLATE "C" NOT NULL,
    "thread_id" TEXT COLLATE "C" NOT NULL DEFAULT '',
    "seq" BIGSERIAL NOT NULL,

    CONSTRAINT "receipt_pkey" PRIMARY KEY ("tenant_id","device_id","message_id")
);

CREATE TABLE "media" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "media_id" TEXT COLLATE "C" NOT NULL,
    "media_ref" TEXT COLLATE "C",
    "device_id" TEXT COLLATE "C",
    "state" TEXT NOT NULL,
    "attached_by" TEXT COLLATE "C",
    "kind" TEXT NOT NULL,
    "mime" TEXT NOT NULL,
    "size" BIGINT NOT NULL,
    "filename" TEXT NOT NULL,
    "sha256" TEXT COLLATE "C" NOT NULL,
    "details" JSONB NOT NULL,
    "created_at" BIGINT NOT NULL,
    "seq" BIGSERIAL NOT NULL,

    CONSTRAINT "media_pkey" PRIMARY KEY ("tenant_id","media_id")
);

CREATE TABLE "audit" (
    "id" BIGSERIAL NOT NULL,
    "tenant_id" TEXT COLLATE "C",
    "at" BIGINT NOT NULL,
    "actor" TEXT NOT NULL,
    "action" TEXT NOT NULL,
    "subject" TEXT NOT NULL,

    CONSTRAINT "audit_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "token_tenant_id_hash_key" ON "token"("tenant_id", "hash");
CREATE INDEX "device_fcm_token_idx" ON "device" USING HASH ("fcm_token");
CREATE INDEX "device_ntfy_topic_idx" ON "device" USING HASH ("ntfy_topic");
CREATE UNIQUE INDEX "channel_tenant_id_number_key" ON "channel"("tenant_id", "number");
CREATE UNIQUE INDEX "channel_tenant_id_idempotency_key_key" ON "channel"("tenant_id", "idempotency_key");
CREATE INDEX "message_tenant_id_chat_id_thread_id_cursor_seq_idx" ON "message"("tenant_id", "chat_id", "thread_id", "cursor", "seq");
CREATE UNIQUE INDEX "message_tenant_id_idempotency_key_key" ON "message"("tenant_id", "idempotency_key");
CREATE INDEX "message_media_tenant_id_message_id_idx" ON "message_media"("tenant_id", "message_id");
CREATE INDEX "turn_tenant_id_chat_id_thread_id_idx" ON "turn"("tenant_id", "chat_id", "thread_id");
CREATE INDEX "agent_frame_tenant_id_agent_id_key_idx" ON "agent_frame"("tenant_id", "agent_id", "key");
CREATE INDEX "agent_frame_key_tenant_id_agent_id_at_idx" ON "agent_frame_key"("tenant_id", "agent_id", "at");
CREATE INDEX "picker_tenant_id_chat_id_thread_id_idx" ON "picker"("tenant_id", "chat_id", "thread_id");
CREATE INDEX "read_state_tenant_id_chat_id_thread_id_idx" ON "read_state"("tenant_id", "chat_id", "thread_id");
CREATE INDEX "receipt_tenant_id_chat_id_thread_id_idx" ON "receipt"("tenant_id", "chat_id", "thread_id");
CREATE INDEX "media_tenant_id_device_id_media_ref_idx" ON "media"("tenant_id", "device_id", "media_ref");
CREATE INDEX "audit_tenant_id_id_idx" ON "audit"("tenant_id", "id");
ALTER TABLE "token" ADD CONSTRAINT "token_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenant"("tenant_id") ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE "device" ADD CONSTRAINT "device_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenant"("tenant_id") ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE "channel" ADD CONSTRAINT "channel_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenant"("tenant_id") ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE "message" ADD CONSTRAINT "message_tenant_id_chat_id_thread_id_fkey" FOREIGN KEY ("tenant_id", "chat_id", "thread_id") REFERENCES "channel"("tenant_id", "chat_id", "thread_id") ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE "message_media" ADD CONSTRAINT "message_media_tenant_id_message_id_fkey" FOREIGN KEY ("tenant_id", "message_id") REFERENCES "message"("tenant_id", "message_id") ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE "turn" ADD CONSTRAINT "turn_tenant_id_chat_id_thread_id_fkey" FOREIGN KEY ("tenant_id", "chat_id", "thread_id") REFERENCES "channel"("tenant_id", "chat_id", "thread_id") ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE "agent" ADD CONSTRAINT "agent_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenant"("tenant_id") ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE "agent_frame" ADD CONSTRAINT "agent_frame_tenant_id_agent_id_fkey" FOREIGN KEY ("tenant_id", "agent_id") REFERENCES "agent"("tenant_id", "agent_id") ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE "agent_frame_key" ADD CONSTRAINT "agent_frame_key_tenant_id_agent_id_fkey" FOREIGN KEY ("tenant_id", "agent_id") REFERENCES "agent"("tenant_id", "agent_id") ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE "picker" ADD CONSTRAINT "picker_tenant_id_chat_id_thread_id_fkey" FOREIGN KEY ("tenant_id", "chat_id", "thread_id") REFERENCES "channel"("tenant_id", "chat_id", "thread_id") ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE "read_state" ADD CONSTRAINT "read_state_tenant_id_chat_id_thread_id_fkey" FOREIGN KEY ("tenant_id", "chat_id", "thread_id") REFERENCES "channel"("tenant_id", "chat_id", "thread_id") ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE "receipt" ADD CONSTRAINT "receipt_tenant_id_chat_id_thread_id_fkey" FOREIGN KEY ("tenant_id", "chat_id", "thread_id") REFERENCES "channel"("tenant_id", "chat_id", "thread_id") ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE "media" ADD CONSTRAINT "media_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenant"("tenant_id") ON DELETE CASCADE ON UPDATE NO ACTION;

-- Partial indexes. Prisma does not know them, and leaves them alone.

-- One default channel, one default agent.
CREATE UNIQUE INDEX "channel_one_default" ON "channel"("tenant_id") WHERE "is_default";
CREATE UNIQUE INDEX "agent_one_default" ON "agent"("tenant_id") WHERE "is_default";

-- One sent or running chat turn per lane, whoever starts it.
CREATE UNIQUE INDEX "turn_one_per_lane" ON "turn"("tenant_id", "chat_id", "thread_id") WHERE "kind" = 'chat' AND "state" IN ('sent', 'running');
CREATE INDEX "turn_open" ON "turn"("tenant_id") WHERE "state" IN ('sent', 'running');
CREATE INDEX "turn_queued" ON "turn"("tenant_id", "chat_id", "thread_id", "position") WHERE "state" = 'queued';

-- Messages whose append is owed, of any tenant.
CREATE INDEX "message_owed" ON "message"("ts") WHERE "cursor" IS NULL AND "deleted_at" IS NULL;

CREATE INDEX "picker_open" ON "picker"("tenant_id") WHERE "state" = 'open';
CREATE INDEX "picker_expiring" ON "picker"("expires_at") WHERE "state" = 'open' AND "expires_at" IS NOT NULL;

-- States are the ones of rows.ts.
ALTER TABLE "tenant" ADD CONSTRAINT "tenant_state" CHECK ("state" IN ('active', 'suspended'));
ALTER TABLE "channel" ADD CONSTRAINT "channel_kind" CHECK ("kind" = CASE WHEN "thread_id" <> '' THEN 'thread' WHEN "is_default" THEN 'default' ELSE 'channel' END);
ALTER TABLE "turn" ADD CONSTRAINT "turn_state" CHECK ("state" IN ('queued', 'sent', 'running', 'ended') AND ("outcome" IS NOT NULL) = ("state" = 'ended'));
ALTER TABLE "picker" ADD CONSTRAINT "picker_state" CHECK ("state" IN ('open', 'answered', 'closed'));
ALTER TABLE "media" ADD CONSTRAINT "media_state" CHECK ("state" IN ('uploaded', 'attached'));
