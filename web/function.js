// SPDX-License-Identifier: GPL-2.0-or-later
//
// One function: its callers and callees, its places, source and instructions.
import { h } from './base.js';
import { formatExact, formatPercent } from './format.js';
import { changeCell, comparison, functionActions, nameCell, shareCell, valueText } from './functions.js';
import { binaryName, functionName } from './state.js';
import { neighboursOf, placeSums } from './sums.js';

/** @typedef {import('./types.js').App} App */
/** @typedef {import('./types.js').View} View */
/** @typedef {{owner: number, offset: number, file: number, line: number, value: number}} PlaceSum */
/** What ran in the code of a function, with what is inlined there. `owner`: the function that has the code;
 * of a function that is inlined into several, the one where most of it ran.
 * @typedef {{function: number, owner: number, sums: PlaceSum[], all: number}} FunctionPlaces */

const MOST_NEIGHBOURS = 100;
const MOST_LINES = 5000;
const CONTEXT_LINES = 4;

/** @param {App} app @returns {View} */
export function createFunction(app) {
  const actions = functionActions(app);
  const content = h('div', { class: 'page' });
  // The chosen file of each function; others come first by their weight.
  /** @type {Map<number, number>} */
  const files = new Map();
  const draw = () => {
    actions.update();
    const fn = app.choice.function;
    if (fn === null) {
      content.replaceChildren(h('p', { class: 'note' },
        'Click a function in another view to see its callers, callees and source here.'));
      return;
    }
    const places = placesOf(app, fn);
    const top = content.parentElement?.scrollTop ?? 0;
    content.replaceChildren(functionFacts(app, fn),
      h('div', { class: 'columns' }, ...neighbourTables(app, fn)),
      h('div', { class: 'columns' }, sourcePanel(app, places, files, draw), codePanel(app, places)),
      ...placeTable(app, places));
    if (content.parentElement) content.parentElement.scrollTop = top;
  };
  content.addEventListener('mouseover', (event) => {
    const row = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target)
      .closest('[data-line]'));
    highlightLine(content, row?.dataset.line ?? null);
  });
  content.addEventListener('mouseleave', () => highlightLine(content, null));
  return {
    id: 'function', label: 'Function',
    element: h('section', { class: 'view scroll' }, h('div', { class: 'toolbar' }, actions.element),
      content),
    update: (changed) => {
      if (changed.has('function')) content.parentElement?.scrollTo(0, 0);
      draw();
    },
  };
}

/** @param {HTMLElement} content @param {string | null} line */
function highlightLine(content, line) {
  for (const row of content.querySelectorAll('.lit')) row.classList.remove('lit');
  if (line) for (const row of content.querySelectorAll(`[data-line="${line}"]`))
    row.classList.add('lit');
}

/** @param {App} app @param {number} fn @returns {FunctionPlaces} the heaviest first */
function placesOf(app, fn) {
  const { function: owners, offset, file, line } = app.data.places;
  const owned = new Map();
  const sums = [...placeSums(app, fn)].map(([place, value]) => {
    owned.set(owners[place], (owned.get(owners[place]) ?? 0) + value);
    return { owner: owners[place], offset: offset[place], file: file[place], line: line[place], value };
  });
  const [owner] = [...owned].reduce((most, one) => one[1] > most[1] ? one : most, [fn, -1]);
  return { function: fn, owner: owned.has(fn) ? fn : owner, all: sums.reduce((sum, { value }) => sum + value, 0),
    sums: sums.sort((a, b) => b.value - a.value || a.offset - b.offset) };
}

/** @param {App} app @param {number} fn */
function functionFacts(app, fn) {
  const { functions, strings } = app.data;
  const { self, total, samples, all, beforeSelf, beforeTotal } = app.sums();
  const file = strings[functions.file[fn]];
  const amount = (/** @type {Float64Array} */ now, /** @type {Float64Array | null} */ before) => {
    if (!before) return [`${valueText(app, now[fn])} (${formatPercent(now[fn], all)})`];
    const compared = comparison(app, before[fn], now[fn]);
    return [`${compared.before} → ${compared.after} `, changeCell(compared.scale, compared.change),
      ` ${compared.ratio}`];
  };
  return h('header', null, h('h2', null, functionName(app.data, fn)), h('dl', { class: 'facts' },
    h('dt', null, 'Self'), h('dd', null, ...amount(self, beforeSelf)),
    h('dt', null, 'Total'), h('dd', null, ...amount(total, beforeTotal)),
    h('dt', null, app.data.rows.length ? 'Calls' : 'Samples'), h('dd', null, formatExact(samples[fn])),
    h('dt', null, 'Binary'), h('dd', null, binaryName(app.data, fn) || 'unknown'),
    file ? [h('dt', null, 'Source'), h('dd', null, functions.line[fn]
      ? `${file}:${functions.line[fn]}` : file)] : null));
}

/** @param {App} app @param {number} fn */
function neighbourTables(app, fn) {
  const { callers, callees } = neighboursOf(app, fn);
  const total = app.sums().total[fn];
  const self = app.sums().self[fn];
  return [neighbourTable(app, 'Callers', callers, total, []),
    neighbourTable(app, 'Callees', callees, total, self
      ? [plainRow(app, 'in the function itself', self, total)] : [])];
}

/** @param {App} app @param {string} text @param {number} value @param {number} whole */
function plainRow(app, text, value, whole) {
  return h('tr', null, h('td', { class: 'number' }, valueText(app, value)),
    h('td', { class: 'share' }, shareCell(value, whole)),
    h('td', { class: 'main' }, h('i', null, text)));
}

/** @param {App} app @param {string} title @param {import('./sums.js').Neighbours} list @param
 *   {number} whole
 *  @param {HTMLElement[]} rows that come first */
function neighbourTable(app, title, list, whole, rows) {
  const shown = list.slice(0, MOST_NEIGHBOURS).map((other) => {
    if (other.function < 0)
      return plainRow(app, 'none: it is the outermost function', other.total, whole);
    const change = app.data.before && comparison(app, other.before, other.total);
    return h('tr', null, h('td', { class: 'number' }, valueText(app, other.total)),
      h('td', { class: 'share' }, change ? changeCell(change.scale, change.change)
        : shareCell(other.total, whole)),
      h('td', { class: 'main' }, h('button', { type: 'button', class: 'link',
        onclick: () => app.choose({ function: other.function }) }, nameCell(app, other.function))));
  });
  const rest = list.slice(MOST_NEIGHBOURS).reduce((sum, { total }) => sum + total, 0);
  if (rest) shown.push(plainRow(app, `${formatExact(list.length - MOST_NEIGHBOURS)} more`, rest,
    whole));
  return h('section', { class: 'panel' }, h('h3', null, title),
    shown.length + rows.length ? h('table', null, h('tbody', null, ...rows, ...shown))
      : h('p', { class: 'note' }, 'None.'));
}

/** @param {App} app @param {FunctionPlaces} places */
function placeTable(app, { sums, all }) {
  if (!sums.length) return [];
  const rows = sums.slice(0, MOST_NEIGHBOURS)
    .map(({ offset, file, line, value }) => h('tr', { dataset: { line: `${file}:${line}` } },
    h('td', { class: 'number' }, valueText(app, value)),
      h('td', { class: 'share' }, shareCell(value, all)),
    h('td', { class: 'code' }, `+${hex(offset)}`),
    h('td', { class: 'main' }, file ? `${app.data.strings[file]}${line ? `:${line}` : ''}` : '')));
  return [h('section', { class: 'panel' }, h('h3', null, 'Places'),
    h('table', null, h('tbody', null, rows)))];
}

/** @param {number} x */
function hex(x) {
  return `0x${x.toString(16)}`;
}

/** @param {App} app @param {FunctionPlaces} places */
function insnsOf(app, places) {
  return app.data.code?.functions.get(places.owner)?.insns ?? [];
}

/** A line of code with what ran there. @param {App} app @param {string} number @param {number}
 *   value
 *  @param {number} whole @param {string} text @param {string} line */
function codeRow(app, number, value, whole, text, line) {
  const share = whole ? (100 * value / whole).toFixed(1) : '0';
  return h('div', { class: 'code-row', dataset: { line }, title: value
    ? `${valueText(app, value)}, ${share} % of the function` : null },
    h('span', { class: 'code-number' }, number),
    h('span', { class: 'code-value bar', style: { '--share': `${share}%` } }, value ? `${share} %`
      : ''),
    h('span', { class: 'code-text' }, text));
}

/**
 * @param {App} app
 * @param {FunctionPlaces} places
 * @param {Map<number, number>} files
 * @param {() => void} redraw
 */
function sourcePanel(app, places, files, redraw) {
  const { data } = app;
  const { functions, strings } = data;
  /** @type {Map<number, Map<number, number>>} */
  const values = new Map();
  /** @type {(file: number, line: number, value: number) => void} */
  const seen = (file, line, value) => {
    if (!file || !line) return;
    const lines = values.get(file) ?? new Map();
    lines.set(line, (lines.get(line) ?? 0) + value);
    values.set(file, lines);
  };
  seen(functions.file[places.function], functions.line[places.function], 0);
  for (const { file, line, value } of places.sums) seen(file, line, value);
  for (const { file, line } of insnsOf(app, places)) seen(file, line, 0);
  const weight = (/** @type {number} */ file) =>
    [...values.get(file) ?? []].reduce((sum, [, value]) => sum + value, 0);
  const known = [...values.keys()].filter((file) => data.code?.sources.has(file))
    .sort((a, b) => weight(b) - weight(a));
  const heading = h('h3', null, 'Source');
  if (!known.length)
    return h('section', { class: 'panel' }, heading, h('p', { class: 'note' }, values.size
      ? `No source of ${strings[[...values.keys()][0]]}: give --build-dir or --symfs.`
        : 'No source: give --build-dir or --symfs.'));
  const file = known.includes(files.get(places.function) ?? -1)
    ? /** @type {number} */ (files.get(places.function)) : known[0];
  const select = h('select', { 'aria-label': 'Source file', onchange: () => {
    files.set(places.function, Number(select.value));
    redraw();
  } }, ...known.map((one) => h('option', { value: one, selected: one === file }, strings[one])));
  return h('section', { class: 'panel' }, heading, known.length > 1 ? select
    : h('p', { class: 'note' }, strings[file]),
    h('div', { class: 'listing', tabindex: 0, 'aria-label': 'Source' },
      sourceRows(app, file, values.get(file) ?? new Map(), places.all)));
}

/**
 * @param {App} app
 * @param {number} file
 * @param {Map<number, number>} values
 * @param {number} whole
 */
function sourceRows(app, file, values, whole) {
  const used = [...values.keys()];
  const low = Math.min(...used) - CONTEXT_LINES;
  const high = Math.max(...used) + CONTEXT_LINES;
  const rows = [];
  for (const { first, lines } of app.data.code?.sources.get(file) ?? []) {
    if (first > high || first + lines.length <= low) continue;
    if (rows.length) rows.push(h('div', { class: 'code-gap' }, '⋯'));
    for (let i = Math.max(0, low - first); i < lines.length && first + i <= high
      && rows.length < MOST_LINES; i++)
      rows.push(codeRow(app, String(first + i), values.get(first + i) ?? 0, whole, lines[i],
        `${file}:${first + i}`));
  }
  return rows;
}

/** @param {App} app @param {FunctionPlaces} places */
function codePanel(app, places) {
  const insns = insnsOf(app, places);
  const heading = h('h3', null, 'Instructions');
  if (!insns.length)
    return h('section', { class: 'panel' }, heading,
      h('p', { class: 'note' }, 'No instructions: give --build-dir or --symfs.'));
  const values = new Map();
  for (const { owner, offset, value } of places.sums)
    if (owner === places.owner) values.set(offset, (values.get(offset) ?? 0) + value);
  const start = app.data.code?.functions.get(places.owner)?.start ?? '';
  const rows = insns.slice(0, MOST_LINES).map(({ offset, text, file, line }) =>
    codeRow(app, `+${offset.toString(16)}`, values.get(offset) ?? 0, places.all, text,
      `${file}:${line}`));
  if (insns.length > MOST_LINES)
    rows.push(h('div', { class: 'code-gap' }, `${formatExact(insns.length - MOST_LINES)} more`));
  return h('section', { class: 'panel' }, heading,
    h('p', { class: 'note' }, `${functionName(app.data, places.owner)}, from ${start}`),
    h('div', { class: 'listing', tabindex: 0, 'aria-label': 'Instructions' }, rows));
}
