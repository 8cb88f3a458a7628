export { coverage, type Outcome, type Result, type RunOptions, runConformance } from './run.js';
export { specRules } from './spec.js';
export { holds, summaryOf, tableOf } from './table.js';
export { type Admin, type Door, type Target, type Tenant, type UrlTarget, urlTarget } from './target.js';
