// The examples of README.md run as they are printed.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

const examples = [...fs.readFileSync('README.md', 'utf8').matchAll(/```js\n([^]*?)```/g)].map((found) => found[1]);

test('the README has examples', () => assert.ok(examples.length >= 2));

for (const [number, example] of examples.entries()) {
  test(`example ${number + 1}`, () => {
    // Below this directory, so that `calve` is found.
    const folder = fs.mkdtempSync('example-');
    try {
      const project = path.resolve(folder, 'project');
      fs.mkdirSync(path.join(project, 'node_modules', 'some'), { recursive: true });
      fs.mkdirSync(path.join(project, 'out'));
      fs.mkdirSync(path.resolve(folder, 'feature'));
      fs.writeFileSync(path.join(project, 'example.mjs'), example);
      const run = spawnSync(process.execPath, ['example.mjs'], { cwd: project, encoding: 'utf8' });
      assert.equal(run.status, 0, run.stderr);
      assert.notEqual(run.stdout, '');
    } finally {
      fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    }
  });
}
