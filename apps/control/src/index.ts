export { buildApi } from './api.js';
export type { Api, ControlDeps } from './control.js';
