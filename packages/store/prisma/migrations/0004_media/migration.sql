-- Bytes are objects of their own, since equal content of a tenant is stored once; and a file that is on its way has a row already, so
-- that whatever its process leaves behind is found.
ALTER TABLE "media" ADD COLUMN "object_id" TEXT COLLATE "C";
ALTER TABLE "media" ADD COLUMN "uploaded_sha256" TEXT COLLATE "C";
ALTER TABLE "media" ADD COLUMN "processed" BOOLEAN NOT NULL DEFAULT false;
ALTER TABLE "media" DROP CONSTRAINT "media_state";
ALTER TABLE "media" ADD CONSTRAINT "media_state" CHECK (state IN ('uploading', 'uploaded', 'offered', 'attached', 'unused'));

CREATE TABLE "media_object" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "object_id" TEXT COLLATE "C" NOT NULL,
    "state" TEXT NOT NULL,
    "size" BIGINT NOT NULL,
    "sha256" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,

    CONSTRAINT "media_object_pkey" PRIMARY KEY ("tenant_id","object_id")
);

CREATE TABLE "media_day" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "day" INTEGER NOT NULL,
    "bytes" BIGINT NOT NULL,

    CONSTRAINT "media_day_pkey" PRIMARY KEY ("tenant_id","day")
);

CREATE INDEX "media_tenant_id_object_id_idx" ON "media"("tenant_id", "object_id");
CREATE UNIQUE INDEX "media_object_stored" ON "media_object"("tenant_id", "sha256") WHERE state = 'stored';
CREATE INDEX "media_object_removing" ON "media_object"("created_at") WHERE state = 'removing';
CREATE INDEX "media_loose" ON "media"("created_at") WHERE state <> 'attached';
ALTER TABLE "media_object" ADD CONSTRAINT "media_object_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenant"("tenant_id") ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE "media_day" ADD CONSTRAINT "media_day_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenant"("tenant_id") ON DELETE CASCADE ON UPDATE NO ACTION;
