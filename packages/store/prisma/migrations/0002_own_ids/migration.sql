-- What an agent calls its own messages, to tell it of their deletion in its own words.
ALTER TABLE "message" ADD COLUMN "own_id" TEXT COLLATE "C";
