export { buildApi } from './api.js';
export { ControlConfig } from './config.js';
export type { Api, ControlDeps } from './control.js';
