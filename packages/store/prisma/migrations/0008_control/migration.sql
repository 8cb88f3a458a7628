-- Administrators' tokens, rotation with overlap, names that an operator gives to devices, and pairing codes.

ALTER TABLE "token" ADD COLUMN "role" TEXT, ADD COLUMN "label" TEXT NOT NULL DEFAULT '', ADD COLUMN "expires_at" BIGINT;
ALTER TABLE "token" ADD CONSTRAINT "token_role" CHECK (("kind" = 'admin') = ("role" IS NOT NULL));

ALTER TABLE "device" ADD COLUMN "label" TEXT;

CREATE TABLE "pairing" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "code_hash" TEXT COLLATE "C" NOT NULL,
    "label" TEXT NOT NULL DEFAULT '',
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "used_by" TEXT COLLATE "C",

    CONSTRAINT "pairing_pkey" PRIMARY KEY ("tenant_id","code_hash")
);

-- Nobody says whose code it is.
CREATE UNIQUE INDEX "pairing_code_hash_key" ON "pairing"("code_hash");

ALTER TABLE "pairing" ADD CONSTRAINT "pairing_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenant"("tenant_id") ON DELETE CASCADE ON UPDATE NO ACTION;
