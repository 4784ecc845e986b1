import * as calve from '../../types/fs-promises.js';

export * from '../../types/fs-promises.js';
export default calve;
