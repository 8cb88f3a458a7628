// npm start: installs and builds what is missing, then runs apps/standalone in this very process. See README.md.
// Only syntax that old versions of Node can read stands here, so that they can say what is wrong.
const version = process.versions.node.split('.').map(Number);
if (version[0] < 20 || (version[0] === 20 && version[1] < 19)) {
  console.error(`Iris Gateway needs Node 20.19 or newer; this is ${process.versions.node}. See https://nodejs.org/`);
  process.exit(1);
}
import('./prepare.mjs')
  .then(({ prepare }) => prepare({ code: 'product', page: !process.argv.includes('--no-web') }))
  .then(() => import(new URL('../apps/standalone/dist/main.js', import.meta.url).href))
  .catch((error) => {
    console.error(error.message);
    process.exit(1);
  });
