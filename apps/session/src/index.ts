export { defaultSessionConfig, SessionConfig } from './config.js';
export { SessionProcessConfig } from './process-config.js';
export { createSession, type Session, type SessionDeps } from './session.js';
