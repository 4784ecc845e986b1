import calve from './lib/index.js';

export const {
  CalveError, cloneFile, cloneFileSync, cloneTree, cloneTreeSync, probe, readFiles, removeTree, removeTreeSync, writeFiles, writeFilesSync,
} = calve;
export default calve;
