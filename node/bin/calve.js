#!/usr/bin/env node
'use strict';
// Runs the program of this platform's package, with this process's streams and arguments, and ends as it does.
const { spawn } = require('node:child_process');
const { dirname } = require('node:path');
const { program } = require('../lib/native.js');

/** The program's path. Where there is none, a message says why, and how to get it. */
function found() {
  try {
    return program();
  } catch (error) {
    console.error(`calve: ${error.message}`);
    if (error.hint !== undefined) console.error(`hint: ${error.hint}`);
    process.exit(1);
  }
}

const path = found();
// `calve bench write` measures this package.
const env = { ...process.env, CALVE_NPM_PACKAGE: dirname(__dirname) };
// Before it is started, so that no signal ends this process alone. What is sent to this process alone is passed on. A terminal sends
// Ctrl-C to both, and the program would take another SIGINT for a second Ctrl-C, which ends it where it is: SIGTERM is no such thing.
const passedOn = { SIGINT: 'SIGTERM', SIGTERM: 'SIGTERM', SIGHUP: 'SIGHUP' };
for (const [signal, other] of Object.entries(passedOn)) process.on(signal, () => child.kill(other));
const child = spawn(path, process.argv.slice(2), { stdio: 'inherit', env });
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
