import * as calve from './types/index.js';

export * from './types/index.js';
export default calve;
