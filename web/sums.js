// SPDX-License-Identifier: GPL-2.0-or-later
//
// Trees and tables of what is selected.
import { binarySearch } from './base.js';

/** @typedef {import('./types.js').App} App */
/** @typedef {import('./types.js').Dataset} Dataset */
/** @typedef {import('./types.js').Rows} Rows */
/** @typedef {import('./types.js').Tree} Tree */
/** @typedef {import('./types.js').FunctionSums} FunctionSums */
/** @typedef {import('./types.js').Numbers} Numbers */

/**
 * Stacks after the transformations of the choice, for all ranges. Node 0 is the root.
 *
 * @typedef {object} Frames
 * @property {number} nr
 * @property {Int32Array | null} of by stack: the node; -1: does not count; null: the stacks are the nodes
 * @property {Numbers} parent
 * @property {Numbers} function of the root: 0
 * @property {Numbers} binary
 * @property {Numbers} category
 * @property {Numbers} inlined
 * @property {Uint32Array} first
 * @property {Uint32Array} next
 * @property {Uint32Array} depth
 * @property {() => Uint8Array} outermost whether no ancestor has the same function
 */

const DROPPED = -1;
const OUTSIDE = -2;

/**
 * What sums are made from, by what they depend on.
 *
 * @type {WeakMap<App, Map<string, {key: string, value: any}>>}
 */
const sumCaches = new WeakMap();

/**
 * @template T
 * @param {App} app
 * @param {string} name
 * @param {any[]} inputs
 * @param {() => T} make
 * @returns {T}
 */
function cached(app, name, inputs, make) {
  let all = sumCaches.get(app);
  if (!all) sumCaches.set(app, all = new Map());
  const key = JSON.stringify(inputs);
  const had = all.get(name);
  if (had?.key === key) return had.value;
  const value = make();
  all.set(name, { key, value });
  return value;
}

/** @template T @param {() => T} make @returns {() => T} what it made at the first call */
function once(make) {
  /** @type {T | undefined} */
  let made;
  return () => made ??= make();
}

/** Forgets all sums, as the data changed. @param {App} app @returns {void} */
export function forgetSums(app) {
  sumCaches.delete(app);
}

/** @param {App} app @returns {{tree: () => Tree, inverted: () => Tree, sums: () => FunctionSums,
 *   matches: () => Uint8Array | null}} */
export function createSums(app) {
  return { tree: () => treeOf(app), inverted: () => invertedOf(app), sums: () => functionSums(app),
    matches: () => searchMatches(app) };
}

/** @param {App} app */
function selectionKey({ choice }) {
  return [choice.event, choice.range, choice.cpu, choice.task];
}

/** @param {App} app */
function frameKey({ choice }) {
  return [choice.hidden, choice.focus, choice.recursion, choice.collapsed];
}

/**
 * Calls fn for the rows that are selected.
 *
 * @param {App} app
 * @param {Rows} rows
 * @param {(row: number, part: number) => void} fn `part` of the row is in the range, 0...1
 * @returns {void}
 */
function forSelected(app, rows, fn) {
  const { event, cpu, task } = app.choice;
  const sameTask = task === null ? null : selectedTasks(app, rows === app.data.before);
  // The old recording has other times.
  const range = rows === app.data.before ? null : app.choice.range;
  const [begin, end] = range ? rowsInRange(app, rows, range) : [0, rows.nr];
  const clips = range !== null && rows.length !== null;
  for (let i = begin; i < end; i++) {
    if (rows.event[i] !== event || (cpu !== null && rows.cpu[i] !== cpu)
      || (sameTask && !sameTask[rows.task[i]])) continue;
    const part = clips ? partInRange(rows, i, range) : 1;
    if (part > 0) fn(i, part);
  }
}

/**
 * Tasks of the old recording have other numbers, but the same names.
 *
 * @param {App} app
 * @param {boolean} byName
 */
function selectedTasks({ data, choice }, byName) {
  const task = choice.task ?? 0;
  const wanted = new Uint8Array(data.tasks.nr + 1);
  wanted[task] = 1;
  if (byName)
    for (let i = 0; i < data.tasks.nr; i++)
      if (data.tasks.name[i] === data.tasks.name[task]) wanted[i] = 1;
  return wanted;
}

/**
 * @param {App} app
 * @param {Rows} rows
 * @param {[number, number]} range
 * @returns {[number, number]}
 */
function rowsInRange(app, rows, [begin, end]) {
  const { time, length } = rows;
  if (!length) return [binarySearch(time, begin), binarySearch(time, end)];
  const latest = cached(app, 'latest', [rows.nr], () => {
    const ends = new Float64Array(rows.nr);
    for (let i = 0, max = 0; i < rows.nr; i++) ends[i] = max = Math.max(max, time[i] + length[i]);
    return ends;
  });
  return [binarySearch(latest, begin), binarySearch(time, end)];
}

/** @param {Rows} rows @param {number} i @param {[number, number]} range */
function partInRange({ time, length }, i, [begin, end]) {
  const whole = /** @type {Float64Array} */ (length)[i];
  if (!whole) return time[i] >= begin && time[i] < end ? 1 : 0;
  return (Math.min(end, time[i] + whole) - Math.max(begin, time[i])) / whole;
}

/** @param {App} app @returns {Float64Array} */
function stackSums(app) {
  return cached(app, 'stacks', selectionKey(app), () => sumStacks(app, app.data.rows));
}

/** @param {App} app @returns {Float64Array | null} */
function stackSumsBefore(app) {
  const { before } = app.data;
  return before && cached(app, 'before', [app.choice.event, app.choice.cpu, app.choice.task],
    () => sumStacks(app, before));
}

/** @param {App} app @param {Rows} rows @returns {Float64Array} */
function sumStacks(app, rows) {
  const sums = new Float64Array(app.data.stacks.nr);
  const { stack } = rows;
  const value = rowValues(app, rows);
  forSelected(app, rows, (i, part) => { sums[stack[i]] += part === 1 ? value[i] : value[i] * part; });
  return sums;
}

/**
 * @param {App} app
 * @param {Rows} rows
 * @returns {Numbers} what counts: weights or numbers of samples
 */
export function rowValues(app, rows) {
  return app.data.head.events[app.choice.event]?.weighs ? rows.weight : rows.count;
}

/**
 * The category of idle tasks, which need not be one of the recording.
 * @param {App} app
 * @returns {number}
 */
export function idleCategory(app) {
  const { categories } = app.data.head;
  const index = categories.indexOf('idle');
  return index < 0 ? categories.length : index;
}

/** @typedef {{cpuTotals: Float64Array, taskTotals: Float64Array, longest: number, distance: number,
 *   categories: number[]}} RowStatistics */

/** Sums of all rows of the chosen event. @param {App} app @returns {RowStatistics} */
export function rowStatistics(app) {
  return cached(app, 'rows', [app.choice.event], () => summarizeRows(app));
}

/** @param {App} app @returns {RowStatistics} */
function summarizeRows(app) {
  const { rows, tasks, stacks, head } = app.data;
  const { event } = app.choice;
  const { nr, cpu, task, stack, length, event: events } = rows;
  const { category } = stacks;
  const value = rowValues(app, rows);
  let cpus = 0;
  for (let i = 0; i < nr; i++) if (cpu[i] > cpus) cpus = cpu[i];
  const cpuTotals = new Float64Array(cpus + 1);
  const taskTotals = new Float64Array(tasks.nr);
  const used = new Uint8Array(head.categories.length + 1);
  const idle = idleCategory(app);
  let longest = 0;
  let samples = 0;
  for (let i = 0; i < nr; i++) {
    if (events[i] !== event) continue;
    const x = value[i];
    used[tasks.idle[task[i]] ? idle : category[stack[i]]] = 1;
    cpuTotals[cpu[i]] += x;
    taskTotals[task[i]] += x;
    const lasts = length ? length[i] : x;
    if (lasts > longest) longest = lasts;
    samples++;
  }
  const busy = Math.max(cpuTotals.reduce((sum, total) => sum + (total ? 1 : 0), 0), 1);
  // What a sample stands for, if it does not say that itself.
  const distance = Math.min(head.length * busy / Math.max(samples, 1), head.length / 20);
  return { cpuTotals, taskTotals, longest, distance,
    categories: [...used.keys()].filter((one) => used[one]) };
}

/** @param {App} app @returns {Frames} */
function framesOf(app) {
  return cached(app, 'frames', frameKey(app), () => buildFrames(app.data, app.choice));
}

/** Frames with all recursive calls and binaries. @param {App} app @returns {Frames} */
function plainFrames(app) {
  const { hidden, focus, recursion, collapsed } = app.choice;
  if (!recursion && !collapsed.length) return framesOf(app);
  return cached(app, 'plain', [hidden, focus], () =>
    buildFrames(app.data, { ...app.choice, recursion: false, collapsed: [] }));
}

/** @param {Dataset} data @param {import('./types.js').Choice} choice @returns {Frames} */
function buildFrames({ stacks, functions }, { hidden, focus, recursion, collapsed }) {
  if (!hidden.length && focus === null && !recursion && !collapsed.length)
    return framesOfStacks(stacks, functions.nr);
  const collapses = new Set(collapsed);
  const isHidden = new Uint8Array(functions.nr);
  for (const fn of hidden) isHidden[fn] = 1;
  const capacity = stacks.nr + 1;
  const of = new Int32Array(stacks.nr);
  const frames = { nr: 1, of, parent: new Uint32Array(capacity),
    function: new Uint32Array(capacity),
    binary: new Uint32Array(capacity), category: new Uint32Array(capacity),
      inlined: new Uint32Array(capacity) };
  const children = new PairMap(stacks.nr);
  of[0] = focus === null ? 0 : OUTSIDE;
  for (let i = 1; i < stacks.nr; i++) {
    const fn = stacks.function[i];
    let parent = of[stacks.parent[i]];
    if (parent === DROPPED || isHidden[fn]) {
      of[i] = DROPPED;
      continue;
    }
    if (parent === OUTSIDE) {
      if (fn !== focus) {
        of[i] = OUTSIDE;
        continue;
      }
      parent = 0;
    }
    const binary = collapses.has(functions.binary[fn]) ? functions.binary[fn] : 0;
    of[i] = binary && frames.binary[parent] === binary ? parent
      : (recursion && !binary && ancestorOf(frames, parent, fn))
        || childOf(frames, children, parent, fn, binary, i, stacks);
  }
  for (let i = 0; i < of.length; i++) if (of[i] === OUTSIDE) of[i] = DROPPED;
  return linked(frames, functions.nr);
}

/** Without any transformation, stacks are frames. @param {import('./types.js').Stacks} stacks @param {number} functions
 *  @returns {Frames} */
function framesOfStacks({ nr, parent, function: fn, category, inlined }, functions) {
  return linked({ nr, of: null, parent, function: fn, binary: new Uint8Array(nr), category, inlined }, functions);
}

/** Numbers by pairs of numbers; faster than a Map. */
class PairMap {
  /** @param {number} capacity */
  constructor(capacity) {
    const size = 2 ** Math.ceil(Math.log2(capacity * 2 + 2));
    this.mask = size - 1;
    this.a = new Uint32Array(size);
    this.b = new Uint32Array(size);
    this.values = new Uint32Array(size);
  }

  /**
   * @param {number} a
   * @param {number} b
   * @returns {number} where the pair is, or is to be, in `values`; 0: it is not
   */
  slot(a, b) {
    let at = Math.imul(a ^ Math.imul(b, 0x85ebca6b), 0x9e3779b1);
    at = Math.imul(at ^ (at >>> 16), 0xc2b2ae35);
    for (at = (at ^ (at >>> 13)) & this.mask; this.values[at]; at = (at + 1) & this.mask)
      if (this.a[at] === a && this.b[at] === b) break;
    this.a[at] = a;
    this.b[at] = b;
    return at;
  }
}

/** @param {any} frames @param {number} node @param {number} fn @returns {number} 0: none */
function ancestorOf(frames, node, fn) {
  while (node && frames.function[node] !== fn) node = frames.parent[node];
  return frames.binary[node] ? 0 : node;
}

/** @param {any} frames @param {PairMap} children @param {number} parent @param {number} fn
 *   @param {number} binary
 *  @param {number} stack @param {import('./types.js').Stacks} stacks @returns {number} */
function childOf(frames, children, parent, fn, binary, stack, stacks) {
  // A collapsed binary has a key of its own, which is no function.
  const slot = children.slot(parent, binary ? 0x80000000 + binary : fn);
  if (!children.values[slot]) {
    const node = children.values[slot] = frames.nr++;
    frames.parent[node] = parent;
    frames.function[node] = fn;
    frames.binary[node] = binary;
    frames.category[node] = stacks.category[stack];
    frames.inlined[node] = binary ? 0 : stacks.inlined[stack];
  }
  return children.values[slot];
}

/** @param {any} frames @param {number} functions @returns {Frames} */
function linked(frames, functions) {
  const links = linkChildren(frames.nr, frames.parent);
  return { ...frames, ...links, outermost: once(() => findOutermost({ ...frames, ...links }, functions)) };
}

/** @param {number} nr @param {Numbers} parent */
function linkChildren(nr, parent) {
  const first = new Uint32Array(nr);
  const next = new Uint32Array(nr);
  for (let i = nr - 1; i > 0; i--) {
    const above = parent[i];
    next[i] = first[above];
    first[above] = i;
  }
  return { first, next, depth: depthsOf({ nr, parent }) };
}

/** @param {{nr: number, parent: Numbers}} nodes */
function depthsOf({ nr, parent }) {
  const depth = new Uint32Array(nr);
  for (let i = 1; i < nr; i++) depth[i] = depth[parent[i]] + 1;
  return depth;
}

/** @param {Pick<Frames, 'nr' | 'parent' | 'function' | 'first' | 'next'>} frames @param {number} functions */
function findOutermost({ nr, parent, function: fn, first, next }, functions) {
  const outermost = new Uint8Array(nr);
  const open = new Uint32Array(functions);
  // In the order of a walk through the tree, `open` says how often functions are on the path.
  for (let node = first[0]; node;) {
    if (!open[fn[node]]++) outermost[node] = 1;
    if (first[node]) {
      node = first[node];
      continue;
    }
    for (; node; node = parent[node]) {
      open[fn[node]]--;
      if (next[node]) break;
    }
    node = next[node];
  }
  return outermost;
}

/** @param {Frames} frames @param {Float64Array} sums by stack @returns {Float64Array} by node */
function selfOf({ nr, of }, sums) {
  if (!of) return sums;
  const self = new Float64Array(nr);
  for (let i = 0; i < of.length; i++) if (of[i] >= 0) self[of[i]] += sums[i];
  return self;
}

/**
 * @param {Float64Array} self
 * @param {Numbers} parent
 * @returns {Float64Array} with what is below
 */
function totalOf(self, parent) {
  const total = self.slice();
  for (let i = self.length - 1; i > 0; i--) if (total[i]) total[parent[i]] += total[i];
  return total;
}

/** @param {App} app @param {Frames} frames @returns {Tree} */
function sumTree(app, frames) {
  const self = selfOf(frames, stackSums(app));
  const before = stackSumsBefore(app);
  const beforeSelf = before && selfOf(frames, before);
  const { nr, parent, function: fn, binary, category, inlined, first, next, depth } = frames;
  return { nr, parent, function: fn, binary, category, inlined, first, next, depth, self,
    total: totalOf(self, parent),
    beforeSelf, beforeTotal: beforeSelf && totalOf(beforeSelf, parent) };
}

/** @param {App} app @returns {Tree} */
function treeOf(app) {
  return cached(app, 'tree', [selectionKey(app), frameKey(app)], () => sumTree(app, framesOf(app)));
}

/** @param {App} app @returns {Uint32Array} of all stacks */
export function stackDepths(app) {
  const { of, depth } = plainFrames(app);
  return of ? cached(app, 'depths', [], () => depthsOf(app.data.stacks)) : depth;
}

/** @param {App} app @returns {(stack: number) => boolean} whether a stack counts */
export function stackFilter(app) {
  const { of } = plainFrames(app);
  return of ? (stack) => of[stack] >= 0 : () => true;
}

/**
 * Sums by stack become sums by function.
 *
 * @param {App} app
 * @param {Float64Array} sums
 * @returns {Float64Array} of each function with what it calls
 */
export function totalsOfStacks(app, sums) {
  const frames = plainFrames(app);
  return byFunction(app, frames, totalOf(selfOf(frames, sums), frames.parent), frames.outermost());
}

/**
 * @param {App} app
 * @param {Frames} frames
 * @param {Float64Array} values
 * @param {Uint8Array | null} only
 */
function byFunction({ data }, frames, values, only) {
  const sums = new Float64Array(data.functions.nr);
  for (let i = 1; i < frames.nr; i++) if (!only || only[i])
    sums[frames.function[i]] += values[i];
  return sums;
}

/** @param {App} app @returns {Tree} with all recursive calls and binaries */
function plainTree(app) {
  const { hidden, focus } = app.choice;
  const frames = plainFrames(app);
  if (frames === framesOf(app)) return treeOf(app);
  return cached(app, 'plainTree', [selectionKey(app), hidden, focus], () => sumTree(app, frames));
}

/** @param {App} app @returns {FunctionSums} which are made when they are read */
function functionSums(app) {
  const { hidden, focus } = app.choice;
  return cached(app, 'functions', [selectionKey(app), hidden, focus], () => {
    const frames = plainFrames(app);
    const tree = plainTree(app);
    /** @type {<T extends Float64Array | null>(values: T, only?: () => Uint8Array) => () => T} */
    const summed = (values, only) => once(() =>
      /** @type {any} */ (values && byFunction(app, frames, values, only?.() ?? null)));
    const self = summed(tree.self);
    const total = summed(tree.total, frames.outermost);
    const beforeSelf = summed(tree.beforeSelf);
    const beforeTotal = summed(tree.beforeTotal, frames.outermost);
    const samples = once(() => countSamples(app, frames));
    return { all: tree.total[0], beforeAll: tree.beforeTotal?.[0] ?? 0,
      get self() { return self(); }, get total() { return total(); }, get samples() { return samples(); },
      get beforeSelf() { return beforeSelf(); }, get beforeTotal() { return beforeTotal(); } };
  });
}

/** @param {App} app @param {Frames} frames @returns {Float64Array} by function */
function countSamples(app, { of, function: fn }) {
  const { stack, count } = app.data.rows;
  const samples = new Float64Array(app.data.functions.nr);
  forSelected(app, app.data.rows, (i) => {
    const node = of ? of[stack[i]] : stack[i];
    if (node > 0) samples[fn[node]] += count[i];
  });
  return samples;
}

// Branches of inverted trees that are smaller are not expanded, so that the trees stay small.
const SMALLEST_BRANCH = 1 / 2000;

/** @param {App} app @returns {Tree} */
function invertedOf(app) {
  return cached(app, 'inverted', [selectionKey(app), frameKey(app)],
    () => invertTree(treeOf(app), app.data.functions.nr));
}

/** @param {Tree} tree @param {number} functions @returns {Tree} */
function invertTree(tree, functions) {
  const { self, beforeSelf } = tree;
  const leaves = [];
  for (let i = 1; i < tree.nr; i++) if (self[i] || beforeSelf?.[i]) leaves.push(i);
  const nodes = Uint32Array.from(leaves);
  const at = nodes.slice();
  const owners = new Uint32Array(nodes.length);
  const result = growingTree(beforeSelf !== null);
  result.total[0] = tree.total[0];
  if (tree.beforeTotal) result.beforeTotal[0] = tree.beforeTotal[0];
  for (let left = nodes.length; left;) {
    invertLevel(tree, result, nodes, at, owners, left, functions);
    left = keepLarge(tree, result, nodes, at, owners, left);
  }
  return finishTree(result);
}

/** @param {boolean} compares @returns {any} */
function growingTree(compares) {
  return { parent: [0], function: [0], binary: [0], category: [0], inlined: [0], total: [0],
    beforeTotal: compares ? [0] : null };
}

/** Adds the callers of one level. @param {Tree} tree @param {any} result @param {Uint32Array}
 *   nodes @param {Uint32Array} at
 *  @param {Uint32Array} owners @param {number} left @param {number} functions */
function invertLevel(tree, result, nodes, at, owners, left, functions) {
  const children = new PairMap(left);
  for (let i = 0; i < left; i++) {
    const from = at[i];
    const slot = children.slot(owners[i], tree.binary[from] ? functions + 1 + tree.binary[from]
      : tree.function[from]);
    let node = children.values[slot];
    if (!node) {
      node = children.values[slot] = result.parent.push(owners[i]) - 1;
      for (const column of ['function', 'binary', 'category', 'inlined'])
        result[column].push(/** @type {any} */ (tree)[column][from]);
      result.total.push(0);
      result.beforeTotal?.push(0);
    }
    result.total[node] += tree.self[nodes[i]];
    if (result.beforeTotal)
      result.beforeTotal[node] += /** @type {Float64Array} */ (tree.beforeSelf)[nodes[i]];
    owners[i] = node;
  }
}

/** Goes on to the callers, where they matter. @param {Tree} tree @param {any} result @param
 *   {Uint32Array} nodes
 *  @param {Uint32Array} at @param {Uint32Array} owners @param {number} left @returns {number}
 *  how many are left */
function keepLarge(tree, result, nodes, at, owners, left) {
  const limit = result.total[0] * SMALLEST_BRANCH;
  const beforeLimit = (result.beforeTotal?.[0] ?? 0) * SMALLEST_BRANCH;
  let kept = 0;
  for (let i = 0; i < left; i++) {
    const parent = tree.parent[at[i]];
    const large = result.total[owners[i]] >= limit
      || (result.beforeTotal?.[owners[i]] ?? -1) >= beforeLimit;
    if (!parent || !large) continue;
    nodes[kept] = nodes[i];
    owners[kept] = owners[i];
    at[kept++] = parent;
  }
  return kept;
}

/** @param {any} result @returns {Tree} */
function finishTree(result) {
  const nr = result.parent.length;
  const parent = Uint32Array.from(result.parent);
  const fn = Uint32Array.from(result.function);
  const total = Float64Array.from(result.total);
  const beforeTotal = result.beforeTotal && Float64Array.from(result.beforeTotal);
  // Only the innermost functions ran themselves.
  const innermost = (/** @type {Float64Array} */ x) =>
    x.map((value, i) => i && !parent[i] ? value : 0);
  return { nr, parent, function: fn, binary: Uint32Array.from(result.binary),
    category: Uint32Array.from(result.category), inlined: Uint32Array.from(result.inlined),
    ...linkChildren(nr, parent), total, self: innermost(total), beforeTotal,
    beforeSelf: beforeTotal && innermost(beforeTotal) };
}

/** @param {string} text @returns {RegExp | null} */
function searchPattern(text) {
  if (!text) return null;
  try {
    return new RegExp(text, 'i');
  } catch {
    return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'i');
  }
}

/** @param {App} app @returns {Uint8Array | null} */
function searchMatches(app) {
  return cached(app, 'matches', [app.choice.search], () => {
    const pattern = searchPattern(app.choice.search);
    const { functions, strings } = app.data;
    return pattern && Uint8Array.from(functions.name, (name) => pattern.test(strings[name]) ? 1
      : 0);
  });
}

/**
 * @param {App} app
 * @returns {{functions: number, total: number}} how much the search finds of what is selected
 */
export function matchSums(app) {
  return cached(app, 'matchSums', [selectionKey(app), app.choice.hidden, app.choice.focus,
    app.choice.search], () => {
    const matches = searchMatches(app);
    if (!matches) return { functions: 0, total: 0 };
    const { nr, parent, function: fn, self, total } = plainTree(app);
    const inside = new Uint8Array(nr);
    const found = new Uint8Array(matches.length);
    let sum = 0;
    for (let i = 1; i < nr; i++) {
      const match = matches[fn[i]];
      if (match && total[i]) found[fn[i]] = 1;
      inside[i] = inside[parent[i]] | match;
      if (inside[i]) sum += self[i];
    }
    return { functions: found.reduce((nr_, one) => nr_ + one, 0), total: sum };
  });
}

/**
 * @typedef {{function: number, total: number, before: number}[]} Neighbours the heaviest first;
 *   function -1: none
 */

/**
 * @param {App} app
 * @param {number} fn
 * @returns {{callers: Neighbours, callees: Neighbours}} weights of the calls that are selected
 */
export function neighboursOf(app, fn) {
  const tree = plainTree(app);
  const outermost = plainFrames(app).outermost();
  const callers = new Map();
  const callees = new Map();
  /** @type {(map: Map<number, any>, other: number, node: number) => void} */
  const add = (map, other, node) => {
    const entry = map.get(other) ?? { function: other, total: 0, before: 0 };
    entry.total += tree.total[node];
    entry.before += tree.beforeTotal?.[node] ?? 0;
    map.set(other, entry);
  };
  for (let i = 1; i < tree.nr; i++) {
    const parent = tree.parent[i];
    if (tree.function[i] === fn && outermost[i]) add(callers, parent ? tree.function[parent] : -1, i);
    if (parent && tree.function[parent] === fn && !callsAbove(tree, outermost, i))
      add(callees, tree.function[i], i);
  }
  const sorted = (/** @type {Map<number, any>} */ map) =>
    [...map.values()].filter((x) => x.total || x.before)
      .sort((a, b) => b.total - a.total || b.before - a.before);
  return { callers: sorted(callers), callees: sorted(callees) };
}

/** Whether the call is also further out, so that it counts there. @param {Tree} tree @param
 *   {Uint8Array} outermost
 *  @param {number} node */
function callsAbove(tree, outermost, node) {
  const caller = tree.function[tree.parent[node]];
  for (let at = tree.parent[node]; at && !(outermost[at] && tree.function[at] === caller); at =
    tree.parent[at])
    if (tree.function[at] === tree.function[node] && tree.parent[at] && tree.function[tree.parent[at]] === caller)
      return true;
  return false;
}

/**
 * By place: what ran in the code of a function, or in the function where it is inlined into others.
 *
 * @param {App} app
 * @param {number} fn
 * @returns {Map<number, number>}
 */
export function placeSums(app, fn) {
  const { rows, places, stacks } = app.data;
  const counts = stackFilter(app);
  const value = rowValues(app, rows);
  const sums = new Map();
  forSelected(app, rows, (i, part) => {
    const place = rows.place[i];
    const stack = rows.stack[i];
    if (!place || (places.function[place] !== fn && stacks.function[stack] !== fn) || !counts(stack)) return;
    sums.set(place, (sums.get(place) ?? 0) + value[i] * part);
  });
  return sums;
}
