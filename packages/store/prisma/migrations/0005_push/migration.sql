-- Where a device can be pushed, what it wants, what was decided for it, and why.

CREATE TABLE "push_target" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "device_id" TEXT COLLATE "C" NOT NULL,
    "kind" TEXT NOT NULL,
    "address" TEXT NOT NULL,
    "keys" JSONB,
    "registration" BIGSERIAL NOT NULL,
    "registered_at" BIGINT NOT NULL,

    CONSTRAINT "push_target_pkey" PRIMARY KEY ("tenant_id","device_id","kind")
);
CREATE TABLE "push_setting" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "content" TEXT NOT NULL DEFAULT 'full',

    CONSTRAINT "push_setting_pkey" PRIMARY KEY ("tenant_id")
);
CREATE TABLE "push_rule" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "device_id" TEXT COLLATE "C" NOT NULL,
    "chat_id" TEXT COLLATE "C" NOT NULL DEFAULT '',
    "thread_id" TEXT COLLATE "C" NOT NULL DEFAULT '',
    "muted_until" BIGINT,
    "quiet" JSONB,

    CONSTRAINT "push_rule_pkey" PRIMARY KEY ("tenant_id","device_id","chat_id","thread_id")
);
CREATE TABLE "push_frame" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "cursor" BIGINT NOT NULL,
    "class" TEXT NOT NULL,
    "chat_id" TEXT COLLATE "C" NOT NULL,
    "thread_id" TEXT COLLATE "C" NOT NULL DEFAULT '',
    "message_id" TEXT COLLATE "C",
    "picker_id" TEXT COLLATE "C",
    "title" TEXT,
    "body" TEXT,
    "except_device_id" TEXT COLLATE "C",
    "at" BIGINT NOT NULL,
    "decided" BOOLEAN NOT NULL DEFAULT false,

    CONSTRAINT "push_frame_pkey" PRIMARY KEY ("tenant_id","cursor")
);
CREATE TABLE "push_ledger" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "device_id" TEXT COLLATE "C" NOT NULL,
    "cursor" BIGINT NOT NULL,
    "class" TEXT NOT NULL,
    "chat_id" TEXT COLLATE "C" NOT NULL,
    "thread_id" TEXT COLLATE "C" NOT NULL DEFAULT '',
    "state" TEXT NOT NULL,
    "why" TEXT,
    "with_cursor" BIGINT,
    "covers" BIGINT NOT NULL,
    "provider" TEXT,
    "answer" TEXT,
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "due_at" BIGINT NOT NULL,
    "decided_at" BIGINT NOT NULL,
    "sent_at" BIGINT,
    "withdrawn_at" BIGINT,

    CONSTRAINT "push_ledger_pkey" PRIMARY KEY ("tenant_id","device_id","cursor")
);
CREATE TABLE "push_action" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "hash" TEXT NOT NULL,
    "picker_id" TEXT COLLATE "C" NOT NULL,
    "device_id" TEXT COLLATE "C" NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "used_by" TEXT,

    CONSTRAINT "push_action_pkey" PRIMARY KEY ("tenant_id","hash")
);

CREATE INDEX "push_target_address_idx" ON "push_target" USING HASH ("address");
CREATE INDEX "push_frame_tenant_id_chat_id_thread_id_idx" ON "push_frame"("tenant_id", "chat_id", "thread_id");
CREATE INDEX "push_frame_at_idx" ON "push_frame"("at");
CREATE INDEX "push_ledger_tenant_id_cursor_idx" ON "push_ledger"("tenant_id", "cursor");
CREATE INDEX "push_ledger_decided_at_idx" ON "push_ledger"("decided_at");
CREATE INDEX "push_action_tenant_id_picker_id_idx" ON "push_action"("tenant_id", "picker_id");

ALTER TABLE "push_target" ADD CONSTRAINT "push_target_tenant_id_device_id_fkey" FOREIGN KEY ("tenant_id", "device_id") REFERENCES "device"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE "push_setting" ADD CONSTRAINT "push_setting_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenant"("tenant_id") ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE "push_rule" ADD CONSTRAINT "push_rule_tenant_id_device_id_fkey" FOREIGN KEY ("tenant_id", "device_id") REFERENCES "device"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE "push_frame" ADD CONSTRAINT "push_frame_tenant_id_chat_id_thread_id_fkey" FOREIGN KEY ("tenant_id", "chat_id", "thread_id") REFERENCES "channel"("tenant_id", "chat_id", "thread_id") ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE "push_ledger" ADD CONSTRAINT "push_ledger_tenant_id_device_id_fkey" FOREIGN KEY ("tenant_id", "device_id") REFERENCES "device"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE "push_action" ADD CONSTRAINT "push_action_tenant_id_picker_id_fkey" FOREIGN KEY ("tenant_id", "picker_id") REFERENCES "picker"("tenant_id", "picker_id") ON DELETE CASCADE ON UPDATE NO ACTION;

-- Partial indexes. Prisma does not know them, and leaves them alone.
CREATE INDEX "push_frame_undecided" ON "push_frame"("at") WHERE NOT "decided";
CREATE INDEX "push_ledger_due" ON "push_ledger"("due_at") WHERE "state" IN ('pending', 'sending');
CREATE INDEX "push_ledger_shown" ON "push_ledger"("tenant_id", "device_id") WHERE "state" = 'sent' AND "withdrawn_at" IS NULL;
CREATE INDEX "push_ledger_open" ON "push_ledger"("tenant_id", "device_id") WHERE "state" IN ('pending', 'sending');
CREATE INDEX "push_ledger_collapsed" ON "push_ledger"("tenant_id", "device_id", "with_cursor") WHERE "state" = 'collapsed';

ALTER TABLE "push_target" ADD CONSTRAINT "push_target_kind" CHECK ("kind" IN ('fcm', 'webpush', 'ntfy'));
ALTER TABLE "push_setting" ADD CONSTRAINT "push_setting_content" CHECK ("content" IN ('full', 'title', 'ids', 'encrypted'));
ALTER TABLE "push_ledger" ADD CONSTRAINT "push_ledger_state" CHECK ("state" IN ('pending', 'sending', 'sent', 'skipped', 'failed', 'collapsed'));

-- The addresses that devices had.
INSERT INTO "push_target" ("tenant_id", "device_id", "kind", "address", "registered_at")
SELECT "tenant_id", "device_id", 'fcm', "fcm_token", "last_seen_at" FROM "device" WHERE "fcm_token" IS NOT NULL
UNION ALL
SELECT "tenant_id", "device_id", 'ntfy', "ntfy_topic", "last_seen_at" FROM "device" WHERE "ntfy_topic" IS NOT NULL;
DROP INDEX "device_fcm_token_idx";
DROP INDEX "device_ntfy_topic_idx";
ALTER TABLE "device" DROP COLUMN "fcm_token", DROP COLUMN "ntfy_topic";
