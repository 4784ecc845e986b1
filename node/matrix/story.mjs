// What every runtime, test runner and bundler of the matrix must see: the README's examples, and calls that fail.
import fs from 'node:fs';

const FAILING = {
  failed: { isCalveError: true, isError: true, name: 'CalveError', code: 'ERR_CALVE_MISSING', path: 'none', errno: -2, hint: 'check the spelling of the path' },
  wrong: { isTypeError: true, code: 'ERR_INVALID_ARG_TYPE', message: 'The argument `src` must be a string, a Buffer, a Uint8Array or a file: URL; it is number' },
  unknown: { isTypeError: true, code: 'ERR_INVALID_ARG_VALUE', message: 'The argument `options.replaces` is unknown; did you mean `replace`?' },
  aborted: { isCalveError: true, isError: true, name: 'AbortError', code: 'ABORT_ERR' },
  sync: { isCalveError: true, isError: true, name: 'CalveError', code: 'ERR_CALVE_MISSING', path: 'none' },
  files: 5,
  found: true,
};

/** Becomes a text of its own: what it needs are its arguments. */
async function story(calve, fs, expected) {
  const caught = (call) => Promise.resolve().then(call).then(() => 'no error', (error) => error);
  const pick = (object, names) => Object.fromEntries(names.filter((name) => object[name] !== undefined).map((name) => [name, object[name]]));
  const kind = (error, ...names) => ({ isCalveError: error instanceof calve.CalveError, isError: error instanceof Error, ...pick(error, names) });
  const type = (error) => ({ isTypeError: error instanceof TypeError, ...pick(error, ['code', 'message']) });
  const controller = new AbortController();
  const before = await calve.probe(Buffer.from('.'), new URL(`file://${process.cwd()}/`));
  const contents = { a: 'x', b: Buffer.from('y'), c: new Uint8Array([1, 2]), d: new ArrayBuffer(3), e: new DataView(new ArrayBuffer(9), 1, 4) };
  const written = await calve.writeFiles(Buffer.from('made'), contents, { mkdir: true, signal: controller.signal });
  for (const [name, size] of [['a', 1], ['b', 1], ['c', 2], ['d', 3], ['e', 4]]) if (fs.statSync(`made/${name}`).size !== size) throw new Error(`made/${name}`);
  for await (const [, bytes] of calve.readFiles(['made/b'])) if (!Buffer.isBuffer(bytes) || bytes.toString() !== 'y') throw new Error('made/b');
  controller.abort();
  const seen = {
    failed: kind(await caught(() => calve.cloneTree('none', 'dst')), 'name', 'code', 'path', 'errno', 'hint'),
    wrong: type(await caught(() => calve.cloneTree(1, 'dst'))),
    unknown: type(await caught(() => calve.cloneTree('made', 'dst', { replaces: true }))),
    aborted: kind(await caught(() => calve.cloneTree('made', 'dst', { signal: controller.signal })), 'name', 'code'),
    sync: kind(await caught(() => calve.cloneTreeSync('none', 'dst')), 'name', 'code', 'path'),
    files: written.files,
    found: before.strategies.length > 0,
  };
  calve.removeTreeSync('made', { wait: true });
  if (JSON.stringify(seen) !== JSON.stringify(expected)) throw new Error(`${JSON.stringify(seen, null, 1)} instead of ${JSON.stringify(expected, null, 1)}`);
  fs.writeFileSync('told', '');
}

const call = `(${story})(calve, fs, ${JSON.stringify(FAILING)})`;

/** The examples, each a function: `imports` are the statements that bring their names. */
function examples(readme) {
  return [...readme.matchAll(/```js\n([^]*?)```/g)].map(([, text]) => {
    const names = [...text.matchAll(/^import \{([^}]*)\} from 'calve';$/gm)].map((found) => found[1]).join(',');
    return `async ({${names}}) => {${text.replace(/^import .*$/gm, '')}}`;
  });
}

/** A jsdom of its age has no such signals. */
const SIGNALS = 'AbortSignal.timeout ??= () => new AbortController().signal;\n';

/** A program, or the body of a test, as a module or for CommonJS. */
export function programs(readmeFile) {
  const each = examples(fs.readFileSync(readmeFile, 'utf8'));
  if (each.length < 2) throw new Error('the README has no examples');
  const all = `for (const example of [${each.join(',\n')}]) await example(calve);\n  await ${call};`;
  const required = "const calve = require('calve');\nconst fs = require('node:fs');\n";
  const imported = "import * as calve from 'calve';\nimport fs from 'node:fs';\n";
  const failed = '.catch((error) => { console.error(error); process.exit(1); })';
  return {
    'story.cjs': `${required}(async () => {\n  ${all}\n})()${failed};\n`,
    'story.mjs': `${imported}(async () => {\n  ${all}\n})()${failed};\n`,
    // Test runners have `test` as a global.
    'story.test.js': `${required}${SIGNALS}test('the story', async () => {\n  ${all}\n});\n`,
    'story.test.mjs': `${imported}test('the story', async () => {\n  ${all}\n});\n`,
    // Where the binaries are out of reach.
    'lost.mjs': "import { cloneTree, CalveError } from 'calve';\ncloneTree('a', 'b').catch((error) => console.log(JSON.stringify([error instanceof CalveError, error.code, error.hint])));\n",
  };
}
