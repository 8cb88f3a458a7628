/** docs/cases.md: each case stands in a title of every file that the table says it is played in. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';

const root = join(import.meta.dirname, '../..');
/** `flow/sync` is below tests/, `edge/drain` somewhere in that app or package. */
const folders = ['tests', 'apps', 'packages'].map((name) => join(root, name));
const files = folders.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.ts$/.test(path) && !/node_modules|(^|\/)dist\//.test(path))
    .map((path) => join(folder, path)),
);
const rows = readFileSync(join(root, 'docs/cases.md'), 'utf8')
  .split('\n')
  .filter((line) => /^\| C\d+/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, id, , played, beyond]) => ({ id: id!, played: names(played!), scripts: names(beyond!) }));

function names(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
}
/** Whether a title of one of the files of that name has the id. */
function stands(id: string, name: string): boolean {
  const [where, what] = name.split('/') as [string, string];
  const found = files.filter((path) => path.includes(`/${where}/`) && new RegExp(`/${what}(\\.flow)?(\\.test)?\\.ts$`).test(path));
  const title = new RegExp(`(['"\`])[^'"\`\\n]*\\b${id}\\b[^'"\`\\n]*`);
  return found.some((path) => title.test(readFileSync(path, 'utf8')));
}

test('every case of the table is played where it says', () => {
  expect(rows.length).toBeGreaterThan(60);
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
  const other = /^(flow|system)\/fuzz$/;
  const missing = rows.flatMap(({ id, played }) =>
    played.filter((name) => !other.test(name) && !stands(id, name)).map((name) => `${id} in ${name}`),
  );
  expect(missing).toEqual([]);
  expect(rows.filter(({ played }) => played.length === 0)).toEqual([]);
  for (const name of rows.flatMap(({ scripts }) => scripts)) expect([name, existsSync(join(root, 'tests', name))]).toEqual([name, true]);
});

test('every case that stands in a title is in the table', () => {
  const known = new Set(rows.map(({ id }) => id));
  const titled = new Set(
    files
      .filter((path) => /\.test\.ts$/.test(path))
      .flatMap((path) =>
        [...readFileSync(path, 'utf8').matchAll(/(?:test|describe)(?:\.each)?[^'"`\n]*['"`][^'"`\n]*/g)].map(([line]) => line),
      )
      .flatMap((title) => [...title.matchAll(/\bC\d{2,3}\b/g)].map(([id]) => id)),
  );
  expect([...titled].filter((id) => !known.has(id))).toEqual([]);
});
