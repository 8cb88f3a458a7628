import { Composer } from './composer.js';
import { Conversation } from './conversation.js';
import type { Session } from './session.js';
import { Sidebar } from './sidebar.js';

export function App({ session }: { session: Session }) {
  return (
    <div class="app">
      <Sidebar session={session} />
      <main class="main">
        <Banner session={session} />
        <Conversation session={session} />
        <Composer session={session} />
      </main>
    </div>
  );
}

function Banner({ session }: { session: Session }) {
  const line = session.connection.value;
  if (session.state.value.gateway === 'restarting') return <div class="banner">The gateway is restarting…</div>;
  if (line.kind === 'ended') {
    const why = new Map([
      [4401, 'The token was refused.'],
      [4403, 'This device was revoked.'],
      [4409, 'This device is open in another window.'],
    ]);
    return <div class="banner bad">{why.get(line.code) ?? `Disconnected (${line.code}).`}</div>;
  }
  if (line.kind !== 'online') return <div class="banner">Connecting…</div>;
  if (session.notice.value) return <div class="banner bad">{session.notice.value}</div>;
  return null;
}
