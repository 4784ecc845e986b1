import { inject } from 'vitest';
import { enter } from '../lib/vitest.js';

await enter(inject('calve'));
