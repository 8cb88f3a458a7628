-- Notes of pushes that may be missing, and decisions found by their whole key from either side. Why so: docs/decisions/0022.

-- From where on a tenant's outbox may hold frames that are worth a push and have no note yet: whoever appended them may be lost.
CREATE TABLE "push_owed" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "cursor" BIGINT NOT NULL,
    "at" BIGINT NOT NULL,

    CONSTRAINT "push_owed_pkey" PRIMARY KEY ("tenant_id","cursor")
);
CREATE INDEX "push_owed_at_idx" ON "push_owed"("at");

ALTER TABLE "push_owed" ADD CONSTRAINT "push_owed_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenant"("tenant_id") ON DELETE CASCADE ON UPDATE NO ACTION;

-- With the device: of a tenant with thousands of them a cursor alone names as many rows, and is no key. The cursor comes first, so that nobody takes it
-- for a way to what one device has.
CREATE INDEX "push_ledger_cursor_tenant_id_device_id_idx" ON "push_ledger"("cursor", "tenant_id", "device_id");
DROP INDEX "push_ledger_tenant_id_cursor_idx";
