// Runs the tests that Node has of `cp`, `rm` and `copyFile` against Calve's functions. What fails with Node's own functions too, since the
// tests are of another version, or of another machine, says nothing: it is named and left out.
//
// usage: node run.mjs SUITE PATCH NODE...      SUITE: the directory `test` of Node's sources. PATCH: patch.cjs, where `calve` is installed.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const [suite, patch, ...nodes] = process.argv.slice(2).map((given) => path.resolve(given));
const files = fs.readdirSync(path.join(suite, 'parallel')).filter((name) => /^test-fs-(cp|rm|copyfile)[^/]*\.m?js$/.test(name)).sort();
if (!files.some((name) => name.startsWith('test-fs-cp')) || files.length < 4) throw new Error(`${suite} has no tests`);

function run(node, file, patches) {
  const given = /^\/\/ Flags:(.*)$/m.exec(fs.readFileSync(file, 'utf8'))?.[1].trim().split(/\s+/) ?? [];
  return spawnSync(node, [...given, ...patches.flatMap((one) => ['--require', one]), file], { encoding: 'utf8', cwd: path.dirname(suite), env: { ...process.env, NODE_TEST_DIR: os.tmpdir(), NODE_TEST_KNOWN_GLOBALS: '0' } });
}

let [passed, failed, skipped] = [0, 0, 0];
for (const node of nodes) {
  const version = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim();
  const before = passed;
  for (const name of files) {
    const file = path.join(suite, 'parallel', name);
    const { status, stdout, stderr } = run(node, file, [patch]);
    if (status === 0) {
      passed += 1;
    } else if (run(node, file, []).status !== 0) {
      skipped += 1;
      console.log(`${version} ${name}: fails with Node's own functions too`);
    } else {
      failed += 1;
      console.log(`${version} ${name}: FAILED\n${stdout}${stderr}`);
    }
  }
  if (passed === before) throw new Error(`${version}: no test has passed`);
}
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exit(failed === 0 ? 0 : 1);
