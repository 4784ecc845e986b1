import calve from './lib/index.js';

export const {
  CalveError, Database, cloneFile, cloneFileSync, cloneTree, cloneTreeSync, database, isSupported, probe, readFiles, removeTree, removeTreeSync,
  startDatabase, writeFiles, writeFilesSync,
} = calve;
export default calve;
