import { render } from 'preact';
import { readAddress } from './address.js';
import { App } from './app.js';
import { openSession } from './session.js';
import { Welcome } from './welcome.js';
import './style.css';

const root = document.getElementById('app')!;
const address = readAddress(location, localStorage);
if (address) {
  // The token leaves the address bar, so that a copied link or a screenshot does not give it away.
  history.replaceState(null, '', location.pathname + location.search);
  const session = openSession(address);
  render(<App session={session} />, root);
} else render(<Welcome />, root);
