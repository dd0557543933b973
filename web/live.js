// SPDX-License-Identifier: GPL-2.0-or-later
//
// Follows a recording that grows, in `kscope view --watch`.
import { loadBlocks } from './data.js';

/** @typedef {import('./types.js').Dataset} Dataset */
/** @typedef {import('./data.js').Packed} Packed */
/** @typedef {{version: number, bytes: number, growing: boolean, error?: string}} ServerState */

const LIVE_EVERY = 1000; // ms
const LIVE_BLOCK = /<script type="application\/octet-stream" id="([a-z-]+)" data-packing="(\w+)">([^<]*)/g;

/** @param {string} html of a page @returns {Promise<Dataset>} */
function dataOfPage(html) {
  /** @type {Map<string, Packed>} */
  const blocks = new Map();
  for (const [, id, packing, text] of html.matchAll(LIVE_BLOCK)) blocks.set(id, { packing, take: () => text });
  return loadBlocks((id) => blocks.get(id) ?? null);
}

/** @param {string} name beside the page @returns {Promise<Response>} */
async function ask(name) {
  const response = await fetch(name, { cache: 'no-store' });
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return response;
}

/**
 * Shows each new version of the recording, if the page comes from `kscope view --watch`.
 *
 * @param {{app: import('./types.js').App, setData: (data: Dataset) => void}} page
 */
export async function follow(page) {
  if (location.protocol !== 'http:' || !location.pathname.endsWith('/live')) return;
  /** @type {number | null} */
  let shown = null;
  for (;;) {
    try {
      /** @type {ServerState} */
      const state = await (await ask('state')).json();
      // The first answer is about the page that is shown, or a later one, which costs no more than a second look.
      if (state.version !== shown) {
        page.setData(await dataOfPage(await (await ask('live')).text()));
        shown = state.version;
      }
      page.app.say(state.error ? state.error : state.growing ? 'Live: the recording is growing' : 'Live: nothing new');
    } catch (error) {
      page.app.say(`Live view ended: ${error instanceof Error ? error.message : error}`);
      return;
    }
    await new Promise((resolve) => { setTimeout(resolve, LIVE_EVERY); });
  }
}
