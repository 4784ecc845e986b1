// Compiled, never run: the declarations for CommonJS.
import calve = require('calve');

const receipt: Promise<calve.CloneReceipt> = calve.cloneTree('a', 'b');
const error: unknown = new Error('x');
if (error instanceof calve.CalveError) void error.hint;
void receipt;

import fs = require('calve/fs');
import fsPromises = require('calve/fs/promises');

void [fs.cpSync('a', 'b'), fs.promises.rm('a'), fsPromises.copyFile('a', 'b'), fs.existsSync('a')];
