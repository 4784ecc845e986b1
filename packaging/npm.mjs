#!/usr/bin/env node
// Writes what npm reads: package.json of a platform's package, or of the main one as it is published.
//
// usage: packaging/npm.mjs platform TARGET DIRECTORY
//        packaging/npm.mjs main DIRECTORY            has a copy of node/
//
// CALVE_REPOSITORY (such as https://github.com/NAME/calve) is what the packages name as their source. npm compares it with where a
// package comes from (provenance).
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const read = (file) => JSON.parse(fs.readFileSync(file, 'utf8'));
const platforms = read(path.join(here, 'platforms.json'));
const manifest = read(path.join(here, '..', 'node', 'package.json'));
const address = process.env.CALVE_REPOSITORY;
const repository = address ? { repository: { type: 'git', url: `git+${address}.git` } } : {};
const [what, ...given] = process.argv.slice(2);

function write(directory, document) {
  fs.writeFileSync(path.join(directory, 'package.json'), `${JSON.stringify(document, null, 2)}\n`);
}

if (what === 'platform') {
  const [target, directory] = given;
  const platform = platforms.find((one) => one.target === target);
  const { os, cpu, libc } = platform;
  const { version, license, engines } = manifest;
  const description = `The binaries of the package calve for ${platform.package}`;
  write(directory, {
    name: `calve-${platform.package}`, version, description, license, ...repository, engines, os: [os], cpu: [cpu],
    // Yarn keeps other packages in archives, from which nothing can be started.
    ...(libc === undefined ? {} : { libc: [libc] }), preferUnplugged: true, files: ['calve.node', 'bin', 'LICENSE-MIT', 'LICENSE-APACHE'],
  });
  fs.writeFileSync(path.join(directory, 'README.md'), `${description}.\n`);
} else if (what === 'main') {
  const [directory] = given;
  // Not in the sources' package.json, where npm would look for them in the registry while building.
  const optionalDependencies = Object.fromEntries(platforms.map((one) => [`calve-${one.package}`, manifest.version]));
  const { devDependencies, scripts, ...rest } = manifest;
  write(directory, { ...rest, ...repository, optionalDependencies });
} else {
  console.error('npm.mjs: platform or main?');
  process.exit(2);
}
