#!/usr/bin/env node
// SPDX-License-Identifier: GPL-2.0-or-later
//
// Opens a local file, or as a module also a URL, in headless Chromium:
//
//   node browser.mjs screenshot FILE OUT.png [WIDTH HEIGHT]
//
// Exit status 1 when the page reported an error (the picture is written all the
// same).  As a module:
//
//   const { result, errors } = await withPage(file, async (page) => {
//     await page.click('...');
//     return page.textContent('...');
//   });
//   assert.deepEqual(errors, []);
//
// page is a playwright page; errors has console errors, uncaught exceptions and
// XML parse errors.  Set CHROMIUM to use another browser binary.

import fs from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const FLAGS = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync',
];

// Options: width and height of the window; hash, the part of the URL after '#'.
export async function withPage(file, fn, { width = 1200, height = 800, hash = '' } = {}) {
  const url = file instanceof URL ? file : pathToFileURL(fs.realpathSync(file));
  url.hash = hash;
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: FLAGS,
  });
  try {
    const page = await browser.newPage({ viewport: { width, height } });
    const errors = [];
    page.on('pageerror', (error) => errors.push(`uncaught: ${error.message}`));
    page.on('console', (msg) => {
      if (msg.type() === 'error') errors.push(`console: ${msg.text()}`);
    });
    await page.goto(url.href);
    // A malformed SVG is no console error: Chromium shows a message in the page.
    const malformed = await page.evaluate(
      () => document.querySelector('parsererror')?.textContent);
    if (malformed) errors.push(`malformed: ${malformed}`);
    const result = await fn(page);
    await page.evaluate(() => 0);       // events sent before this have arrived now
    return { result, errors };
  } finally {
    await browser.close();
  }
}

async function main([command, file, out, width = '1200', height = '800']) {
  if (command !== 'screenshot' || !out || !(Number(width) > 0 && Number(height) > 0)) {
    console.error('usage: node browser.mjs screenshot FILE OUT.png [WIDTH HEIGHT]');
    return 2;
  }
  try {
    const { errors } = await withPage(file, (page) => page.screenshot({ path: out }),
      { width: Number(width), height: Number(height) });
    for (const error of errors) console.error(`browser.mjs: ${error}`);
    return errors.length ? 1 : 0;
  } catch (error) {
    console.error(`browser.mjs: ${error.message}`);
    return 1;
  }
}

if (process.argv[1] && fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  process.exitCode = await main(process.argv.slice(2));
