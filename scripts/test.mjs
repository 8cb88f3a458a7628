// npm test: installs and builds what is missing, starts throw-away services on free ports, runs the layers of tests, stops
// everything, and ends with a plain line: `N passed, N failed`. See README.md.
const version = process.versions.node.split('.').map(Number);
if (version[0] < 20 || (version[0] === 20 && version[1] < 19)) {
  console.error(`Iris Gateway needs Node 20.19 or newer; this is ${process.versions.node}. See https://nodejs.org/`);
  process.exit(1);
}
import('./run-tests.mjs')
  .then(({ runTests }) => runTests(process.argv.slice(2)))
  .then((code) => process.exit(code))
  .catch((error) => {
    console.error(error.message);
    process.exit(1);
  });
