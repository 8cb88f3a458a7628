-- Search. How it finds messages, and why by these columns: docs/decisions, "Search by grams of words".

-- Pieces of the folded text as hashes that are a tenant's own. Null: not folded yet by this version; migrate() does that next.
ALTER TABLE "message" ADD COLUMN "search_grams" INTEGER[];
-- Hashes cannot be made smaller.
ALTER TABLE "message" ALTER COLUMN "search_grams" SET STORAGE EXTERNAL;

-- Compared byte by byte, whatever the database's locale.
ALTER TABLE "message" ALTER COLUMN "search_text" TYPE TEXT COLLATE "C";

-- No query is planned by what is in them, so ANALYZE need not look.
ALTER TABLE "message" ALTER COLUMN "search_text" SET STATISTICS 0;
ALTER TABLE "message" ALTER COLUMN "search_grams" SET STATISTICS 0;

CREATE INDEX "message_search_grams_idx" ON "message" USING GIN ("search_grams");

-- The newest of a tenant, whatever the lane.
CREATE INDEX "message_newest" ON "message"("tenant_id", "cursor", "seq") WHERE "deleted_at" IS NULL;

-- Empty but between the two steps of this migration.
CREATE INDEX "message_unfolded" ON "message"("tenant_id", "message_id") WHERE "search_grams" IS NULL;
