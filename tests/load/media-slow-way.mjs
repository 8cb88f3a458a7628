/** The way to a server, so many bytes a second for all connections together, in a process of its own: `media-many.mjs` says where, and hears on which port. */
import { connect, createServer } from 'node:net';

const { hostname, port, bytes_per_second } = JSON.parse(process.argv[2]);
let next = Date.now();
const way = createServer((inner) => {
  const outer = connect(port, hostname);
  inner.on('data', (data) => {
    inner.pause();
    next = Math.max(next, Date.now()) + (data.length / bytes_per_second) * 1000;
    setTimeout(
      () => {
        outer.write(data);
        inner.resume();
      },
      Math.max(0, next - Date.now()),
    );
  });
  outer.on('data', (data) => inner.write(data));
  for (const [one, other] of [
    [inner, outer],
    [outer, inner],
  ])
    one.on('close', () => other.destroy()).on('error', () => other.destroy());
});
way.listen(0, '127.0.0.1', () => process.send({ port: way.address().port }));
process.on('disconnect', () => process.exit(0));
