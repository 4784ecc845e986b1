import calve from '../../lib/fs-promises.js';

export * from 'node:fs/promises';
export const { copyFile, cp, rm } = calve;
export default calve;
