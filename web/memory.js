// SPDX-License-Identifier: GPL-2.0-or-later
//
// Allocations over time: what is live, and who allocated it.
import { VirtualTable, binarySearch, button, h } from './base.js';
import { lineColour } from './colours.js';
import { formatAxis, formatBytes, formatCount, formatChange } from './format.js';
import { nameCell } from './functions.js';
import { functionName } from './state.js';
import { stackFilter, totalsOfStacks } from './sums.js';

/** @typedef {import('./types.js').App} App */
/** @typedef {import('./types.js').View} View */
/**
 * @typedef {{begin: number, end: number, live: Float64Array[], peak: number, peakTime: number}}
 *   Live
 */
/**
 * @typedef {{allocated: Float64Array, freed: Float64Array, blocks: Float64Array, atPeak:
 *   Float64Array}} MemorySums
 */

const POINTS = 600;
const SVG = 'http://www.w3.org/2000/svg';

/** @param {App} app @returns {View} */
export function createMemory(app) {
  let byStack = false;
  let sort = 'kept';
  /** @type {MemorySums} */
  let sums;
  /** @type {number[]} */
  let order = [];
  /** @type {Live} */
  let live;
  const graph = h('div', { class: 'memory-graph',
    onmousemove: (/** @type {MouseEvent} */ event) => showTip(event),
    onmouseleave: () => app.tip(0, 0, null) });
  const legend = h('div', { class: 'legend' });
  const table = new VirtualTable({ label: 'Allocations',
    row: (i) => ({ cells: [formatBytes(sums.allocated[order[i]]), formatBytes(sums.freed[order[i]]),
      formatChange(keptOf(sums, order[i]), formatBytes).replace('+', ''),
        formatBytes(sums.atPeak[order[i]]),
      formatCount(sums.blocks[order[i]]), byStack ? stackCell(app, order[i])
        : nameCell(app, order[i])] }),
    onActive: (i) => app.choose({ function: byStack ? app.data.stacks.function[order[i]]
      : order[i] }, true),
    onOpen: () => app.choose({ tab: 'function' }),
    onSort: (id) => {
      sort = id;
      draw();
    } });
  const modes = [button('By function', 'Functions with what they call', () => setMode(false)),
    button('By stack', 'Each stack that allocated', () => setMode(true))];

  const setMode = (/** @type {boolean} */ on) => {
    byStack = on;
    draw();
  };
  const showTip = (/** @type {MouseEvent} */ event) => {
    const { left, width } = graph.getBoundingClientRect();
    const at = Math.min(POINTS - 1, Math.max(0,
      Math.floor((event.clientX - left) / width * POINTS)));
    const time = live.begin + (at + 0.5) / POINTS * (live.end - live.begin);
    /** @type {[string, string][]} */
    const heaps = live.live.map((values, heap) =>
      [app.data.head.heaps[heap] || 'heap', formatBytes(values[at])]);
    app.tip(event.clientX, event.clientY, [formatAxis(time, app.data.head.axis), ...heaps]);
  };
  const draw = () => {
    const { heaps, axis } = app.data.head;
    modes.forEach((mode, i) => mode.setAttribute('aria-pressed', String(!!i === byStack)));
    live = liveBytes(app);
    sums = memorySums(app, live, byStack);
    drawLive(graph, live, heaps, axis);
    legend.replaceChildren(
      h('span', null, `Peak: ${formatBytes(live.peak)} at ${formatAxis(live.peakTime, axis)}`),
      ...heaps.map((name) =>
        h('span', null, h('i', { class: 'swatch', style: { background: lineColour(name) } }),
          name)));
    table.setColumns(memoryColumns(byStack, sort));
    order = sortedRows(sums, sort);
    const key = (/** @type {number} */ x) => byStack ? app.data.stacks.function[x] : x;
    table.setRows(order.length, app.choice.function === null ? -1
      : order.findIndex((x) => key(x) === app.choice.function));
  };
  return { id: 'memory', label: 'Memory', update: draw,
    element: h('section', { class: 'view list' },
      h('div', { class: 'toolbar' }, legend, h('div', { class: 'segments' }, modes)),
      graph, table.element) };
}

/** @param {MemorySums} sums @param {number} i */
function keptOf({ allocated, freed }, i) {
  return allocated[i] - freed[i];
}

/** @param {boolean} byStack @param {string} sort @returns {import('./base.js').Column[]} */
function memoryColumns(byStack, sort) {
  /** @type {[string, string, string, string][]} */
  const columns = [['allocated', 'Allocated', 'In the selected time', 'number wide'],
    ['freed', 'Freed', 'Of it, or of what was allocated before', 'number wide'],
    ['kept', 'Kept', 'Allocated, but not freed', 'number'],
      ['atPeak', 'At peak', 'Live at the peak', 'number'],
    ['blocks', 'Blocks', 'Blocks that are kept', 'number wide']];
  return [...columns.map(([id, label, title, name]) => ({ id, label, title, class: name,
    sort: /** @type {'descending' | 'none'} */ (id === sort ? 'descending' : 'none') })),
  { id: 'name', label: byStack ? 'Stack, from the innermost function'
    : 'Function', class: 'main' }];
}

/** @param {App} app @param {number} stack */
function stackCell({ data }, stack) {
  const names = [];
  for (let at = stack; at; at = data.stacks.parent[at])
    names.push(functionName(data, data.stacks.function[at]));
  return h('span', { class: 'name', title: names.join('\n') }, names.join(' ← '));
}

/** @param {MemorySums} sums @param {string} sort @returns {number[]} */
function sortedRows(sums, sort) {
  const key = (/** @type {number} */ i) => sort === 'kept' ? keptOf(sums, i)
    : /** @type {any} */ (sums)[sort][i];
  const rows = [];
  for (let i = 0; i < sums.allocated.length; i++)
    if (sums.allocated[i] || sums.freed[i] || sums.atPeak[i]) rows.push(i);
  return rows.sort((a, b) => key(b) - key(a) || a - b);
}

/** @param {App} app @returns {import('./types.js').Allocs} */
function allocsOf(app) {
  return /** @type {import('./types.js').Allocs} */ (app.data.allocs);
}

/**
 * @param {App} app
 * @returns {(i: number) => boolean} whether an allocation is selected, at any time
 */
function allocSelected(app) {
  const allocs = allocsOf(app);
  const counts = stackFilter(app);
  const { task } = app.choice;
  return (i) => (task === null || allocs.task[i] === task) && counts(allocs.stack[i]);
}

/** @param {App} app @returns {Live} the largest number of live bytes at each point, by heap */
function liveBytes(app) {
  const allocs = allocsOf(app);
  // A range has its begin, but not its end; the whole recording has both.
  const [begin, end] = app.choice.range ?? [0, app.data.head.length + 1];
  const live = Array.from({ length: Math.max(1, app.data.head.heaps.length) },
    () => new Float64Array(POINTS));
  const now = new Float64Array(live.length);
  const selected = allocSelected(app);
  let [sum, peak, peakTime, point] = [0, 0, begin, 0];
  for (const [i, values] of live.entries()) values[0] = now[i];
  for (let i = 0; i < allocs.nr && allocs.time[i] < end; i++) {
    if (!selected(i)) continue;
    const heap = allocs.heap[i] < live.length ? allocs.heap[i] : 0;
    const to = allocs.time[i] < begin ? 0
      : Math.min(POINTS - 1, Math.floor((allocs.time[i] - begin) / (end - begin) * POINTS));
    for (; point < to; point++) live.forEach((values, at) => { values[point + 1] = now[at]; });
    now[heap] += allocs.size[i];
    sum += allocs.size[i];
    // Before the range, only what is left of it counts.
    live[heap][to] = allocs.time[i] < begin ? now[heap] : Math.max(live[heap][to], now[heap]);
    if (allocs.time[i] < begin) peak = sum;
    else if (sum > peak) [peak, peakTime] = [sum, allocs.time[i]];
  }
  for (; point < POINTS - 1; point++)
    live.forEach((values, at) => { values[point + 1] = now[at]; });
  return { begin, end, live, peak, peakTime };
}

/** @param {App} app @param {Live} live @param {boolean} byStack @returns {MemorySums} */
function memorySums(app, { begin, end, peakTime }, byStack) {
  const allocs = allocsOf(app);
  const selected = allocSelected(app);
  const make = () => new Float64Array(app.data.stacks.nr);
  const sums = { allocated: make(), freed: make(), blocks: make(), atPeak: make() };
  const last = binarySearch(allocs.time, end);
  for (let i = 0; i < last; i++) {
    if (!selected(i)) continue;
    const stack = allocs.stack[i];
    const size = allocs.size[i];
    if (allocs.time[i] <= peakTime) sums.atPeak[stack] += size;
    if (allocs.time[i] < begin) continue;
    if (size >= 0) sums.allocated[stack] += size;
    else sums.freed[stack] -= size;
    sums.blocks[stack] += allocs.blocks[i];
  }
  if (byStack) return sums;
  const totals = (/** @type {Float64Array} */ values) => totalsOfStacks(app, values);
  return { allocated: totals(sums.allocated), freed: totals(sums.freed),
    blocks: totals(sums.blocks), atPeak: totals(sums.atPeak) };
}

/**
 * @param {HTMLElement} graph
 * @param {Live} live
 * @param {string[]} heaps
 * @param {import('./types.js').Head['axis']} axis
 */
function drawLive(graph, { begin, end, live, peak }, heaps, axis) {
  const largest = Math.max(1, ...live.map((values) => values.reduce((a, b) => Math.max(a, b))));
  const svg = svgElement('svg', { viewBox: `0 0 ${POINTS} 100`, preserveAspectRatio: 'none',
    role: 'img',
    'aria-label': `Live bytes over time; the peak is ${formatBytes(peak)}` });
  live.forEach((values, heap) => {
    const steps = Array.from(values, (value, i) =>
      `V${(99 - 97 * Math.max(0, value) / largest).toFixed(2)}H${i + 1}`);
    svg.append(svgElement('path', { d: `M0 99${steps.join('')}`, fill: 'none',
      stroke: lineColour(heaps[heap] ?? ''),
      'stroke-width': 1.5, 'stroke-dasharray': heap % 2 ? '6 3'
        : 'none', 'vector-effect': 'non-scaling-stroke' }));
  });
  graph.replaceChildren(svg, h('span', { class: 'memory-top' }, formatBytes(largest)),
    h('span', { class: 'memory-begin' }, formatAxis(begin, axis)),
      h('span', { class: 'memory-end' }, formatAxis(end, axis)));
}

/** @param {string} tag @param {Record<string, string | number>} attributes */
function svgElement(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}
