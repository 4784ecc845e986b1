import { end, prepared } from '../lib/vitest.js';

export default async function setup(project) {
  const provided = await prepared(project.config.provide.calveTemplate);
  project.provide('calve', provided);
  return () => end(provided);
}
