export { buildApi } from './api.js';
export { ControlConfig, ControlProcessConfig } from './config.js';
export type { Api, ControlDeps } from './control.js';
