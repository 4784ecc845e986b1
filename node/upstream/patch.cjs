// Loaded before a test of Node's own: `fs` has Calve's functions then, for every kind of import.
const fs = require('node:fs');
const { syncBuiltinESMExports } = require('node:module');
const calve = require('calve/fs');

for (const name of ['copyFile', 'copyFileSync', 'cp', 'cpSync', 'rm', 'rmSync']) fs[name] = calve[name];
for (const name of ['copyFile', 'cp', 'rm']) fs.promises[name] = calve.promises[name];
syncBuiltinESMExports();
