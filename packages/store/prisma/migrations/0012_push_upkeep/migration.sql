-- What the queue may lose of pushes. Why so: docs/decisions/0016.

-- Tenants in which something that may be shown has gone stale. Looked at a while after, whatever the queue did.
CREATE TABLE "push_stale" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "at" BIGINT NOT NULL,

    CONSTRAINT "push_stale_pkey" PRIMARY KEY ("tenant_id")
);
CREATE INDEX "push_stale_at_idx" ON "push_stale"("at");

ALTER TABLE "push_stale" ADD CONSTRAINT "push_stale_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenant"("tenant_id") ON DELETE CASCADE ON UPDATE NO ACTION;
