-- Keys of deleted messages are kept for a time, and this says which still are. Why so: docs/decisions/0013.

CREATE TABLE "dead_key" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "message_id" TEXT COLLATE "C" NOT NULL,
    "at" BIGINT NOT NULL,

    CONSTRAINT "dead_key_pkey" PRIMARY KEY ("tenant_id","message_id")
);

ALTER TABLE "dead_key" ADD CONSTRAINT "dead_key_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenant"("tenant_id") ON DELETE CASCADE ON UPDATE NO ACTION;

-- Read, not locked: messages go in meanwhile. One that is deleted meanwhile by a version before this one keeps its key.
INSERT INTO "dead_key" ("tenant_id", "message_id", "at")
SELECT "tenant_id", "message_id", "deleted_at" FROM "message" WHERE "deleted_at" IS NOT NULL AND "idempotency_key" IS NOT NULL;
