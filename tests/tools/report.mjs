#!/usr/bin/env node
// SPDX-License-Identifier: GPL-2.0-or-later
//
// Does with an HTML report what a user does, in headless Chromium, and prints what it shows, as JSON:
//
//   node report.mjs URL|FILE < steps.json
//
// steps.json is a list of steps, each an object with one of these members:
//   window [WIDTH, HEIGHT]   theme "dark"|"light"     of the browser
//   hash TEXT                opens the page anew with this hash
//   click SELECTOR           at [X, Y]: there, in parts of its size; offset [X, Y]: plus so many pixels
//   drag SELECTOR            from [X, Y] to [X, Y], likewise
//   key KEY                  as Playwright names it
//   type TEXT                into SELECTOR, the member `into`
//   wait EXPRESSION          until it is true in the page
//   read NAME                the text of `of` SELECTOR, or the cells of the rows in it (table: true), or the value of an
//                            expression (js: EXPRESSION), which ends up in the output as NAME
//   shot FILE                a picture
//   print FILE               a PDF, as it is printed
//   media "print"|"screen"
// The output has `errors`, too: what the page reported as errors, and every dialog, and
// every request for something outside of the page's folder.

import fs from 'node:fs';
import { pathToFileURL } from 'node:url';
import { withPage } from './browser.mjs';

const PATIENCE = 300 * 1000;            // ms: for a busy machine
const READY = "performance.getEntriesByName('kscope-ready').length || document.querySelector('[role=alert]')";
const SETTLED = 'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))';

// page.waitForFunction() needs eval(), which the page forbids.
async function until(page, expression) {
  for (const begin = Date.now(); !await page.evaluate(`!!(${expression})`);) {
    if (Date.now() - begin > PATIENCE) throw new Error(`never true: ${expression}`);
    await new Promise((resolve) => { setTimeout(resolve, 30); });
  }
}

async function point(page, selector, [x, y]) {
  const box = await page.locator(selector).first().boundingBox({ timeout: PATIENCE });
  return [box.x + box.width * x, box.y + box.height * y];
}

async function rows(page, selector) {
  return page.locator(selector).first().evaluate((table) => [...table.querySelectorAll('[role=row], tr')]
    .map((row) => [...row.querySelectorAll('[role=cell], [role=gridcell], td')].map((cell) => cell.innerText.trim())));
}

async function read(page, { of, table, js }) {
  if (js) return page.evaluate(js);
  if (table) return rows(page, of);
  return page.locator(of).allInnerTexts();
}

const actions = {
  window: (page, [width, height]) => page.setViewportSize({ width, height }),
  theme: (page, colorScheme) => page.emulateMedia({ colorScheme }),
  media: (page, media) => page.emulateMedia({ media }),
  hash: async (page, hash) => {
    const url = new URL(page.url());
    url.hash = hash;
    await page.goto('about:blank');
    await page.goto(url.href);
    await until(page, READY);
  },
  click: async (page, selector, { at = [0.5, 0.5], offset = [0, 0] }) => {
    const [x, y] = await point(page, selector, at);
    await page.mouse.click(x + offset[0], y + offset[1]);
  },
  drag: async (page, selector, { from, to }) => {
    await page.mouse.move(...await point(page, selector, from));
    await page.mouse.down();
    await page.mouse.move(...await point(page, selector, to), { steps: 5 });
    await page.mouse.up();
  },
  key: (page, key) => page.keyboard.press(key),
  type: (page, text, { into }) => page.locator(into).fill(text),
  wait: until,
  shot: (page, path) => page.screenshot({ path }),
  print: (page, path) => page.pdf({ path }),
};

async function run(page, steps) {
  const found = {};
  for (const step of steps) {
    if (step.read) found[step.read] = await read(page, step);
    else for (const name of Object.keys(step)) if (actions[name]) await actions[name](page, step[name], step);
    await page.evaluate(SETTLED);
  }
  return found;
}

const [place] = process.argv.slice(2);
const steps = JSON.parse(fs.readFileSync(0, 'utf8'));
const requests = [], dialogs = [];
const url = /^https?:/.test(place) ? new URL(place) : pathToFileURL(fs.realpathSync(place));
const { result, errors } = await withPage(url, async (page) => {
  page.on('request', (request) => { if (!request.url().startsWith(new URL('.', url).href)) requests.push(request.url()); });
  page.on('dialog', (dialog) => { dialogs.push(dialog.message()); dialog.dismiss(); });
  await until(page, READY);
  return run(page, steps);
});
console.log(JSON.stringify({ ...result, errors, requests, dialogs }));
