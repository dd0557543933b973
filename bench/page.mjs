#!/usr/bin/env node
// SPDX-License-Identifier: GPL-2.0-or-later
//
// Times of an HTML report in headless Chromium, as JSON, in ms:
//
//   node page.mjs FILE
//
//   paint   from the request to the first picture of the flame graph, with its frames
//   range   from a change of the selected time to the next picture; the median of several
//   search  the same of a search
//   tabs    the slowest first picture of a tab
//   memory  MB of the page's JavaScript, afterwards

import { withPage } from '../tests/tools/browser.mjs';

const TABS = ['chart', 'calltree', 'functions', 'function', 'flame'];
const FRAME = 'new Promise((done) => requestAnimationFrame(() => setTimeout(done)))';

async function timeOf(page, action) {
  return page.evaluate(`(async () => {
    const begin = performance.now();
    ${action};
    await ${FRAME};
    await ${FRAME};
    return performance.now() - begin;
  })()`);
}

const median = (times) => times.sort((a, b) => a - b)[times.length >> 1];

const { result, errors } = await withPage(process.argv[2], async (page) => {
  while (!await page.evaluate('performance.getEntriesByName("kscope-ready").length'));
  const paint = await page.evaluate('performance.getEntriesByName("kscope-ready")[0].startTime');
  const length = await page.evaluate('kscopePage.app.data.head.length');
  const range = [];
  for (let i = 1; i < 12; i++) {
    const part = JSON.stringify([length * i / 40, length * (1 - i / 30)].map(Math.round));
    range.push(await timeOf(page, `kscopePage.app.choose({ range: ${part} })`));
  }
  const search = [await timeOf(page, "kscopePage.app.choose({ search: 'a' })"),
    await timeOf(page, "kscopePage.app.choose({ search: 're' })"), await timeOf(page, "kscopePage.app.choose({ search: '' })")];
  const tabs = [];
  for (const tab of TABS) tabs.push(await timeOf(page, `kscopePage.app.choose({ tab: '${tab}' })`));
  const memory = await page.evaluate('performance.memory.usedJSHeapSize / 1e6');
  return { paint, range: median(range), search: median(search), tabs: Math.max(...tabs), memory };
});
if (errors.length) {
  console.error(errors.join('\n'));
  process.exitCode = 1;
}
console.log(JSON.stringify(result));
