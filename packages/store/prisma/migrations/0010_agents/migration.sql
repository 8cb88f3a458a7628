-- What the gateway's own runner answers with, per agent; its secrets sealed.

CREATE TABLE "agent_backend" (
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "agent_id" TEXT COLLATE "C" NOT NULL,
    "kind" TEXT NOT NULL,
    "settings" JSONB NOT NULL,
    "token_id" TEXT COLLATE "C" NOT NULL,
    "sealed" TEXT NOT NULL,
    "has_key" BOOLEAN NOT NULL,
    "changed_at" BIGINT NOT NULL,

    CONSTRAINT "agent_backend_pkey" PRIMARY KEY ("tenant_id", "agent_id"),
    CONSTRAINT "agent_backend_agent_fkey" FOREIGN KEY ("tenant_id", "agent_id") REFERENCES "agent"("tenant_id", "agent_id") ON DELETE CASCADE ON UPDATE NO ACTION
);
