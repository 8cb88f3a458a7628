export { buildApi } from './api.js';
export { sealedFor } from './backends.js';
export { ControlConfig, ControlProcessConfig, defaultControlConfig } from './config.js';
export type { Api, ControlDeps } from './control.js';
