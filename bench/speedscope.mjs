#!/usr/bin/env node
// SPDX-License-Identifier: GPL-2.0-or-later
//
// How long speedscope's page takes in headless Chromium until it shows a profile, as JSON, in ms:
//
//   node speedscope.mjs FILE

import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { withPage } from '../tests/tools/browser.mjs';

const require = createRequire(new URL('../tests/tools/browser.mjs', import.meta.url));
const release = path.join(path.dirname(require.resolve('speedscope/package.json')), 'dist/release');

const { result } = await withPage(path.join(release, 'index.html'), async (page) => {
  const input = page.locator('input[type=file]').first();
  await input.waitFor({ state: 'attached', timeout: 0 });
  const begin = Date.now();
  await input.setInputFiles(process.argv[2]);
  await page.getByText('Time Order', { exact: false }).first().waitFor({ timeout: 0 });
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done)))');
  return { paint: Date.now() - begin, read: fs.statSync(process.argv[2]).size };
});
console.log(JSON.stringify(result));
