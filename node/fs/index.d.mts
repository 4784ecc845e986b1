import * as calve from '../types/fs.js';

export * from '../types/fs.js';
export default calve;
