/**
 * The bill of materials: everything that the product is built with, as CycloneDX JSON, from the lock file alone.
 *
 *   npm run sbom [-- FILE]     writes it, by default to sbom.cdx.json
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { billOfMaterials } from './check/dependencies.mjs';
import { root } from './check/root.mjs';

const file = process.argv[2] ?? join(root, 'sbom.cdx.json');
const bill = billOfMaterials();
writeFileSync(file, `${JSON.stringify(bill, null, 1)}\n`);
console.log(`${bill.components.length} components in ${file}`);
