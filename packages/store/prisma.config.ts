import { defineConfig } from 'prisma/config';

/** For the Prisma command line. The product itself gives the address in its own configuration. */
export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
  // `generate` and `validate` need no database; an address that nothing answers on fails plainly where one is needed.
  datasource: { url: process.env.DATABASE_URL ?? 'postgresql://127.0.0.1:1/DATABASE_URL_is_not_set' },
});
