#!/usr/bin/env node
// SPDX-License-Identifier: GPL-2.0-or-later
//
// Opens profiles in speedscope's web page, from its npm package, in headless Chromium:
//
//   node speedscope.mjs FILE [OUT.png]
//
// prints what the page shows as JSON:
//   title     of the page
//   invalid   what is wrong by speedscope's schema, if the file says that it is of it
//   file      what the page exports: all profiles, as it understood them
//   active    the name of the profile that it shows first
//   rows      the first rows of its table of functions: { total, self, name }
// The picture shows that table.  Exit status 1 when the page reported an error.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRequire } from 'node:module';
import Ajv from 'ajv';
import { withPage } from './browser.mjs';

const PATIENCE = 300 * 1000;            // ms: for a busy machine
const RELEASE = path.join(
  path.dirname(createRequire(import.meta.url).resolve('speedscope/package.json')), 'dist/release');

function problems(file) {
  const data = JSON.parse(fs.readFileSync(file, 'utf8'));
  if (!data.$schema) return [];
  const schema = JSON.parse(fs.readFileSync(path.join(RELEASE, 'file-format-schema.json'), 'utf8'));
  // The schema itself is a list of definitions, and refers to the one of files.
  const ajv = new Ajv({ strict: false });
  const validate = ajv.compile(schema.$ref ? schema : { ...schema, $ref: '#/definitions/FileFormat.File' });
  return validate(data) ? [] : validate.errors.map((error) => `${error.instancePath} ${error.message}`);
}

// The page can only be given a file as a script that calls it.
function scriptOf(file, folder) {
  const script = path.join(folder, 'load.js');
  const base64 = fs.readFileSync(file).toString('base64');
  fs.writeFileSync(script,
    `speedscope.loadFileFromBase64(${JSON.stringify(path.basename(file))}, "${base64}")`);
  return script;
}

async function exported(page) {
  await page.evaluate(() => {
    URL.createObjectURL = (blob) => {
      blob.text().then((text) => { window.exported = text; });
      return 'about:blank';
    };
    HTMLAnchorElement.prototype.click = () => {};
  });
  await page.getByText('Export', { exact: false }).first().click();
  const text = await page.waitForFunction(() => window.exported, null, { timeout: PATIENCE });
  return JSON.parse(await text.jsonValue());
}

// It says in a dialog why it does not open a file.
async function opened(page) {
  const table = page.waitForFunction(() => document.querySelector('table tr td'), null, { timeout: PATIENCE });
  const refused = new Promise((resolve, reject) => {
    page.on('dialog', (dialog) => dialog.dismiss().then(() => reject(new Error(dialog.message()))));
  });
  await Promise.race([table, refused]);
}

async function look(page, picture) {
  await opened(page);
  // The first table is the list of profiles, if there are several.
  const rows = await page.$$eval('table', (tables) => [...tables.at(-1).querySelectorAll('tr')]
    .map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent))
    .filter((cells) => cells.length >= 3)
    .map(([total, self, name]) => ({ total, self, name })));
  const title = await page.title();
  if (picture) await page.screenshot({ path: picture });
  const shown = await page.evaluate(() => document.body.innerText);
  const file = await exported(page);
  const { name } = file.profiles[file.activeProfileIndex];
  return { title, active: shown.includes(name.slice(0, 80)) ? name : null, rows, file };
}

async function main([file, picture]) {
  if (!file) {
    console.error('usage: node speedscope.mjs FILE [OUT.png]');
    return 2;
  }
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'kscope-speedscope-'));
  try {
    const { result, errors } = await withPage(path.join(RELEASE, 'index.html'),
      (page) => look(page, picture),
      { hash: `localProfilePath=${scriptOf(file, folder)}&view=sandwich` });
    for (const error of errors) console.error(`speedscope.mjs: ${error}`);
    console.log(JSON.stringify({ invalid: problems(file), ...result }));
    return errors.length ? 1 : 0;
  } catch (error) {
    console.error(`speedscope.mjs: ${error.message}`);
    return 1;
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

process.exitCode = await main(process.argv.slice(2));
