import calve from '../lib/fs.js';

export * from 'node:fs';
export const { copyFile, copyFileSync, cp, cpSync, promises, rm, rmSync } = calve;
export default calve;
