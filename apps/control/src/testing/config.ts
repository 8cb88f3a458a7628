import { type ControlConfig, defaultControlConfig } from '../config.js';

/** Every setting as it is when nothing is set, and what the test wants. */
export const testConfig = (more: Partial<ControlConfig> = {}): ControlConfig => ({
  ...defaultControlConfig,
  admin_token: 'admin-token-of-the-test',
  ...more,
});
