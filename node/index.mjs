import calve from './lib/index.js';

export const {
  CalveError, cloneFile, cloneTree, cloneTreeSync, probe, readFiles, removeTree, writeFiles, writeFilesSync,
} = calve;
export default calve;
