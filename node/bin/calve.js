#!/usr/bin/env node
'use strict';
// Runs the program of this platform's package, with this process's streams and arguments, and ends as it does.
const { spawn } = require('node:child_process');
const { dirname } = require('node:path');
const { program } = require('../lib/native.js');

// `calve bench write` measures this package.
const env = { ...process.env, CALVE_NPM_PACKAGE: dirname(__dirname) };
const child = spawn(program(), process.argv.slice(2), { stdio: 'inherit', env });
// A terminal sends Ctrl-C to both. What is sent to this process alone is passed on.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => signal === 'SIGINT' && process.stdin.isTTY ? undefined : child.kill(signal));
}
child.on('error', (error) => {
  console.error(`calve: cannot start the program: ${error.message}`);
  process.exitCode = 1;
});
child.on('exit', (code, signal) => {
  if (signal === null) {
    process.exitCode = code;
    return;
  }
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
