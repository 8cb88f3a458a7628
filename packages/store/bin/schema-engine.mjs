#!/usr/bin/env node
// The schema engine for the Prisma command line: see src/schema-engine/main.ts. Needs the package built.
import { main } from '../dist/schema-engine/main.js';

process.exitCode = await main(process.argv.slice(2));
// Pools that the engine leaves open would keep the process.
process.exit();
