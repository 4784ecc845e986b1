// The installed package in the places that people use it in: versions of Node, Bun, test runners with realms of their own, bundlers.
// Each has an empty project with what npm has installed.
//
// usage: node run.mjs INSTALLED TOOLS README DROP_INS [BUN]
//        INSTALLED: a directory with `node_modules`, which npm has made from the packed packages. TOOLS: one with the tools'. DROP_INS: the
//        page with examples for Vite and esbuild.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { programs } from './story.mjs';

const [installed, toolsOf, readme, dropIns, bun] = process.argv.slice(2).map((given) => path.resolve(given));
const tools = path.join(toolsOf, 'node_modules');
const nodes = { 18: path.join(tools, 'node-18', 'bin', 'node'), 20: path.join(tools, 'node-20', 'bin', 'node'), 22: path.join(tools, 'node-22', 'bin', 'node') };
const newest = nodes[22];
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'calve-matrix-'));
let failures = 0;

/** Names the place, and what went wrong in it. */
function place(name, use) {
  const began = performance.now();
  const wrong = use(project(name.replace(/[^a-z0-9]+/gi, '-')));
  failures += wrong === undefined ? 0 : 1;
  console.log(`${wrong === undefined ? 'ok' : 'FAILED'} ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)${wrong === undefined ? '' : `\n${wrong}`}`);
}

/** An empty project in which `calve` is installed, and what the README's examples take for granted. */
function project(name) {
  const directory = path.join(work, name, 'project');
  for (const below of ['node_modules/some', 'out', '../feature']) fs.mkdirSync(path.join(directory, below), { recursive: true });
  fs.writeFileSync(path.join(work, name, 'package.json'), '{ "private": true }\n');
  // The same files under further names: they are large, and nothing writes them.
  spawnSync('cp', ['-al', path.join(installed, 'node_modules'), path.join(work, name)], { stdio: 'inherit' });
  for (const [file, text] of Object.entries(programs(readme))) fs.writeFileSync(path.join(directory, file), text);
  return directory;
}

/** Runs a program that tells the story. Returns what was wrong. */
function tells(directory, program, ...given) {
  const told = path.join(directory, 'told');
  fs.rmSync(told, { force: true });
  for (const made of ['../feature/node_modules', 'out/a.txt', 'out/sub']) fs.rmSync(path.join(directory, made), { recursive: true, force: true });
  const run = spawnSync(program, given, { cwd: directory, encoding: 'utf8', env: { ...process.env, CI: 'true', FORCE_COLOR: '0' }, timeout: 120_000 });
  if (run.status === 0 && fs.existsSync(told)) return undefined;
  return `${program} ${given.join(' ')}: ${run.error ?? run.status ?? run.signal}, the story ${fs.existsSync(told) ? 'was' : 'was not'} told\n${run.stdout}${run.stderr}`;
}

const tool = (...name) => path.join(tools, ...name);
const bin = (name, field) => {
  const found = JSON.parse(fs.readFileSync(tool(name, 'package.json'), 'utf8')).bin;
  return tool(name, typeof found === 'string' ? found : found[field]);
};

for (const [version, node] of Object.entries(nodes)) {
  place(`Node ${version}`, (directory) => tells(directory, node, 'story.mjs') ?? tells(directory, node, 'story.cjs'));
}
if (bun) place('Bun', (directory) => tells(directory, bun, 'story.mjs') ?? tells(directory, bun, 'story.cjs'));

for (const environment of ['node', 'jsdom']) {
  place(`Jest, ${environment}`, (directory) => {
    const config = { rootDir: directory, testMatch: ['**/story.test.js'], testEnvironment: tool(`jest-environment-${environment}`), transform: {}, haste: { enableSymlinks: false }, cacheDirectory: path.join(work, 'jest') };
    fs.writeFileSync(path.join(directory, 'jest.config.json'), JSON.stringify(config));
    return tells(directory, newest, bin('jest', 'jest'), '--config', 'jest.config.json', '--silent', '--runInBand');
  });
}
for (const pool of ['forks', 'threads', 'vmThreads']) {
  place(`Vitest, ${pool}`, (directory) =>
    tells(directory, newest, bin('vitest', 'vitest'), 'run', '--root', '.', '--globals', '--silent', `--pool=${pool}`, 'story.test.mjs'));
}

/** A bundle with calve outside of it tells the story; one with calve in it, from which nothing leads to the binaries, says what to do. */
function bundles(directory, bundle) {
  const outside = bundle('story.mjs', path.join(directory, 'outside.cjs'), true);
  const wrong = outside ?? tells(directory, newest, 'outside.cjs');
  if (wrong !== undefined) return wrong;
  const apart = fs.mkdtempSync(path.join(work, 'apart-'));
  const inside = bundle('lost.mjs', path.join(apart, 'inside.cjs'), false);
  if (inside !== undefined) return inside;
  const run = spawnSync(newest, ['inside.cjs'], { cwd: apart, encoding: 'utf8' });
  const [isCalveError, code, hint] = JSON.parse(run.stdout || '[]');
  if (isCalveError === true && code === 'ERR_CALVE_NO_PACKAGE' && hint.includes("`external: ['calve']`")) return undefined;
  return `of a bundle with calve in it: ${run.stdout}${run.stderr}`;
}

const builds = (run) => (run.status === 0 ? undefined : `it was not bundled: ${run.stdout}${run.stderr}`);
const esbuild = (directory, ...external) => (entry, to, isOutside) => builds(spawnSync(newest, [
  bin('esbuild', 'esbuild'), entry, '--bundle', '--platform=node', '--format=cjs', `--outfile=${to}`, ...(isOutside ? external : []),
], { cwd: directory, encoding: 'utf8' }));
place('esbuild, external', (directory) => bundles(directory, esbuild(directory, '--external:calve')));
place('esbuild, packages external', (directory) => bundles(directory, esbuild(directory, '--packages=external')));
place('webpack', (directory) => bundles(directory, (entry, to, isOutside) => {
  const options = {
    mode: 'production', target: 'node', context: directory, entry: `./${entry}`, output: { path: path.dirname(to), filename: path.basename(to) },
    ...(isOutside ? { externals: { calve: 'commonjs calve' } } : {}),
  };
  const code = `require(process.argv[1])(JSON.parse(process.argv[2]), (error, stats) => {
    if (error || stats.hasErrors()) { console.error(error ?? stats.toString('errors-only')); process.exit(1); }
  });`;
  return builds(spawnSync(newest, ['-e', code, tool('webpack'), JSON.stringify(options)], { cwd: directory, encoding: 'utf8' }));
}));

/** An example that begins with `// NAME`, run in a project with two assets. */
function copiesAssets(directory, name, ...given) {
  const example = fs.readFileSync(dropIns, 'utf8').split('```js\n').map((block) => block.split('```')[0]).find((block) => block.startsWith(`// ${name}`));
  const text = { [name]: example, 'index.html': '<script type="module" src="src/index.js"></script>\n', 'src/index.js': 'document.title = "x";\n', 'assets/icons/one.svg': '<svg/>\n' };
  for (const [file, contents] of Object.entries(text)) {
    fs.mkdirSync(path.join(directory, path.dirname(file)), { recursive: true });
    fs.writeFileSync(path.join(directory, file), contents);
  }
  const run = spawnSync(newest, given, { cwd: directory, encoding: 'utf8' });
  const built = ['dist/assets/icons/one.svg', 'dist/index.html', 'dist/index.js'].filter((file) => fs.existsSync(path.join(directory, file)));
  return run.status === 0 && built.includes('dist/assets/icons/one.svg') && built.length === 2 ? undefined : `built ${built}\n${run.stdout}${run.stderr}`;
}

place('the documented plugin for Vite', (directory) => copiesAssets(directory, 'vite.config.js', bin('vite', 'vite'), 'build'));
place('the documented plugin for esbuild', (directory) => {
  fs.symlinkSync(tool('esbuild'), path.join(directory, 'node_modules', 'esbuild'));
  return copiesAssets(directory, 'build.mjs', 'build.mjs');
});

fs.rmSync(work, { recursive: true, force: true });
console.log(`${failures} of the places failed`);
process.exitCode = failures === 0 ? 0 : 1;
