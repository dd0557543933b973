// SPDX-License-Identifier: GPL-2.0-or-later
//
// The table of functions, and what can be done with a function.
import { VirtualTable, button, h } from './base.js';
import { compareColour, functionColour, textColour } from './colours.js';
import { formatChange, formatExact, formatPercent, formatValue, plural } from './format.js';
import { binaryName, functionName } from './state.js';

/** @typedef {import('./types.js').App} App */
/** @typedef {import('./types.js').View} View */
/** @typedef {import('./base.js').Column} Column */

/** @param {App} app */
export function eventOf(app) {
  return app.data.head.events[app.choice.event]
    ?? { name: '', unit: '', weighs: false, samples: 0, weight: 0 };
}

/** @param {App} app @param {number} value @returns {string} */
export function valueText(app, value) {
  const event = eventOf(app);
  return event.weighs ? formatValue(value, event) : formatExact(value);
}

/**
 * A share of the whole, with a bar.
 *
 * @param {number} part
 * @param {number} whole
 * @returns {HTMLElement}
 */
export function shareCell(part, whole) {
  const share = whole ? Math.min(1, part / whole) : 0;
  return h('span', { class: 'bar', style: { '--share': `${(100 * share).toFixed(2)}%` } },
    formatPercent(part, whole));
}

/**
 * @param {App} app
 * @param {number} before
 * @param {number} after
 * @returns {{before: string, after: string, change: string, ratio: string, scale: [number,
 *   number]}} by choice.compare
 */
export function comparison(app, before, after) {
  const { all, beforeAll } = app.sums();
  if (app.choice.compare === 'absolute')
    return { before: valueText(app, before), after: valueText(app, after),
      change: formatChange(after - before, (x) => valueText(app, x)),
        ratio: ratioText(before, after), scale: [before, after] };
  const [old, now] = [beforeAll ? before / beforeAll : 0, all ? after / all : 0];
  return { before: formatPercent(before, beforeAll), after: formatPercent(after, all),
    change: formatChange((now - old) * 100, (x) => `${x.toFixed(2)} pp`),
      ratio: ratioText(old, now), scale: [old, now] };
}

/** @param {number} before @param {number} after */
function ratioText(before, after) {
  if (!before) return after ? 'new' : '–';
  return after ? `× ${(after / before).toPrecision(3)}` : 'gone';
}

/** @param {[number, number]} scale @param {string} text @returns {HTMLElement} */
export function changeCell(scale, text) {
  const background = compareColour(...scale);
  return h('span', { class: 'change', style: { background, color: textColour(background) } }, text);
}

/**
 * A function's name with its colour.
 *
 * @param {App} app
 * @param {number} fn
 * @param {number} [category]
 * @returns {HTMLElement}
 */
export function nameCell(app, fn, category = 0) {
  const found = app.matches()?.[fn];
  const name = functionName(app.data, fn);
  return h('span', { class: 'name', title: name },
    h('i', { class: 'swatch', style: { background: functionColour(fn, category, app) } }),
    found ? h('mark', null, name) : name);
}

/** @param {string} path @returns {string} */
export function baseName(path) {
  return path.slice(path.lastIndexOf('/') + 1) || path;
}

/**
 * What a key or button does with the selected function.
 *
 * @type {Record<string, (app: App, fn: number) => void>}
 */
export const functionCommands = {
  focus: (app, fn) => app.choose({ focus: app.choice.focus === fn ? null : fn, zoom: [] }),
  hide: (app, fn) => app.choose({ hidden: [...new Set([...app.choice.hidden, fn])], function: null,
    zoom: [] }),
  collapse: (app, fn) => {
    const binary = app.data.functions.binary[fn];
    const { collapsed } = app.choice;
    if (binary) app.choose({ collapsed: collapsed.includes(binary)
      ? collapsed.filter((x) => x !== binary) : [...collapsed, binary],
      zoom: [] });
  },
  open: (app, fn) => app.choose({ function: fn, tab: 'function' }),
};

/**
 * @param {App} app
 * @returns {{element: HTMLElement, update: () => void}} buttons for the selected function
 */
export function functionActions(app) {
  const run = (/** @type {string} */ name) => () =>
    app.choice.function !== null && functionCommands[name](app, app.choice.function);
  const name = h('span', { class: 'selected-name' });
  const buttons = [button('Open', 'Show its callers, callees and source (Enter)', run('open')),
    button('Focus', 'Count only stacks with it, from it on (f)', run('focus')),
    button('Hide', 'Do not count samples whose stack has it (x)', run('hide')),
    button('Collapse binary', 'Show consecutive frames of its binary as one (c)', run('collapse'))];
  const element = h('div', { class: 'actions' }, name, buttons);
  return { element, update: () => {
    const fn = app.choice.function;
    name.textContent = fn === null ? '' : functionName(app.data, fn);
    name.title = name.textContent ?? '';
    for (const one of buttons) one.disabled = fn === null;
  } };
}

/**
 * Buttons that switch members of the choice.
 *
 * @param {App} app
 * @param {[keyof import('./types.js').Choice, any, any, string, string][]} switches key, value
 *   if off and on, text, title
 * @returns {{element: HTMLElement, update: () => void}}
 */
export function choiceSwitches(app, switches) {
  const buttons = switches.map(([key, off, on, text, title]) =>
    button(text, title, () => app.choose({ [key]: app.choice[key] === on ? off : on, zoom: [] })));
  return { element: h('div', { class: 'actions' }, buttons),
    update: () => switches.forEach(([key, , on], i) =>
    buttons[i].setAttribute('aria-pressed', String(app.choice[key] === on))) };
}

/** @type {Record<string, [string, string, string]>} label, title, class by column */
const FUNCTION_COLUMNS = {
  self: ['Self', 'In the function itself', 'number'],
  selfShare: ['Self %', 'In the function itself', 'share'],
  total: ['Total', 'With what it calls', 'number wide'],
  totalShare: ['Total %', 'With what it calls', 'share'],
  samples: ['Samples', 'Samples in the function itself', 'number wide'],
  calls: ['Calls', 'How often it was called', 'number wide'],
  before: ['Before', 'In the function itself, in the old recording', 'number'],
  after: ['After', 'In the function itself, in the new recording', 'number'],
  change: ['Change', 'In the function itself; + is slower, − is faster', 'number'],
  ratio: ['Ratio', 'After / before', 'number wide'],
  totalChange: ['Total change', 'With what it calls; + is slower, − is faster', 'number wide'],
  name: ['Function', 'The name', 'main'],
  binary: ['Binary', 'Where the function is', 'binary wide'],
};

/** What a column sorts by, where it is not its own name. @type {Record<string, string>} */
const SORT_KEYS = { selfShare: 'self', totalShare: 'total', after: 'self' };

/** @param {App} app @returns {View} */
export function createFunctions(app) {
  /** @type {Uint32Array} */
  let order = new Uint32Array(0);
  const note = h('span', { class: 'note' });
  const actions = functionActions(app);
  const switches = choiceSwitches(app, app.data.before
    ? [['compare', 'share', 'absolute', 'Absolute', 'Compare numbers rather than shares']] : []);
  const table = new VirtualTable({ label: 'Functions',
    row: (i) => ({ cells: columnIds(app).map((id) => functionCell(app, id, order[i])) }),
    onActive: (i) => app.choose({ function: order[i] }, true),
    onOpen: (i) => functionCommands.open(app, order[i]),
    onSort: (id) => {
      const key = SORT_KEYS[id] ?? id;
      app.choose({ sort: app.choice.sort === key ? `-${key}` : key }, true);
    } });
  const place = () => app.choice.function === null ? -1 : order.indexOf(app.choice.function);
  return {
    id: 'functions', label: 'Functions',
    element: h('section', { class: 'view list' },
      h('div', { class: 'toolbar' }, actions.element, switches.element, note), table.element),
    update: (changed) => {
      actions.update();
      switches.update();
      table.setColumns(functionColumns(app));
      if (changed.size > 1 || !changed.has('function')) order = sortFunctions(app);
      note.textContent = plural(order.length, 'function');
      table.setRows(order.length, place());
      if (changed.has('function') && table.active >= 0) {
        table.scrollTo(table.active);
        table.draw();
      }
    },
    find: (direction) => {
      if (order.length) table.activate((table.active + direction + order.length) % order.length);
    },
  };
}

/** @param {App} app @returns {string[]} */
function columnIds(app) {
  return app.data.before ? ['before', 'after', 'change', 'ratio', 'totalChange', 'name', 'binary']
    : ['self', 'selfShare', 'total', 'totalShare', 'samples', 'name', 'binary'];
}

/** @param {App} app @returns {Column[]} */
function functionColumns(app) {
  const { sort } = app.choice;
  return columnIds(app).map((id) => {
    const [label, title, name] = FUNCTION_COLUMNS[id === 'samples' && app.data.rows.length ? 'calls' : id];
    const key = SORT_KEYS[id] ?? id;
    const [down, up] = key === 'name' || key === 'binary' ? ['ascending', 'descending']
      : ['descending', 'ascending'];
    return { id, label, title, class: name,
      sort: /** @type {any} */ (sort === key ? down : sort === `-${key}` ? up : 'none') };
  });
}

/** @param {App} app @param {string} id @param {number} fn @returns {import('./base.js').Child} */
function functionCell(app, id, fn) {
  const { self, total, samples, all, beforeSelf, beforeTotal } = app.sums();
  switch (id) {
    case 'self': return valueText(app, self[fn]);
    case 'selfShare': return shareCell(self[fn], all);
    case 'total': return valueText(app, total[fn]);
    case 'totalShare': return shareCell(total[fn], all);
    case 'samples': return formatExact(samples[fn]);
    case 'name': return nameCell(app, fn);
    case 'binary': return h('span', { title: binaryName(app.data, fn) },
      baseName(binaryName(app.data, fn)));
  }
  const compared = id === 'totalChange' ? comparison(app, beforeTotal?.[fn] ?? 0, total[fn])
    : comparison(app, beforeSelf?.[fn] ?? 0, self[fn]);
  if (id === 'change' || id === 'totalChange') return changeCell(compared.scale, compared.change);
  return /** @type {any} */ (compared)[id];
}

/** @param {App} app @returns {Uint32Array} the functions that the table shows */
function sortFunctions(app) {
  const { total, samples, beforeTotal } = app.sums();
  const matches = app.matches();
  const shown = new Uint32Array(total.length);
  let count = 0;
  for (let i = 0; i < total.length; i++)
    if ((total[i] || samples[i] || beforeTotal?.[i]) && (!matches || matches[i]))
      shown[count++] = i;
  const reverse = app.choice.sort.startsWith('-') ? -1 : 1;
  const keys = sortKeys(app, app.choice.sort.replace('-', ''));
  // Of equal ones, the numbers decide: the order does not change by chance.
  return shown.subarray(0, count).sort((a, b) => reverse * (keys[b] - keys[a]) || a - b);
}

/** @param {App} app @param {string} sort @returns {ArrayLike<number>} larger ones come first */
function sortKeys(app, sort) {
  const { self, total, samples, all, beforeSelf, beforeTotal, beforeAll } = app.sums();
  const absolute = app.choice.compare === 'absolute';
  const [oldAll, newAll] = absolute ? [1, 1] : [beforeAll || 1, all || 1];
  /**
   * @type {(now: Float64Array, old: Float64Array | null, compare: (a: number, b: number) =>
   *   number) => Float64Array}
   */
  const compared = (now, old, compare) => now.map((x, i) =>
    compare((old?.[i] ?? 0) / oldAll, x / newAll));
  switch (sort) {
    case 'total': return total;
    case 'samples': return samples;
    case 'before': return beforeSelf ?? self;
    case 'change': return compared(self, beforeSelf, (a, b) => b - a);
    case 'totalChange': return compared(total, beforeTotal, (a, b) => b - a);
    case 'ratio': return compared(self, beforeSelf, (a, b) => a ? b / a : b ? 1e300 : 1);
    case 'name': return nameRanks(app, app.data.functions.name);
    case 'binary': return nameRanks(app, app.data.functions.binary);
    default: return self;
  }
}

/** @param {App} app @param {import('./types.js').Numbers} column @returns {Float64Array} */
function nameRanks({ data }, column) {
  const texts = [...new Set(column)].sort((a, b) => data.strings[a] < data.strings[b] ? -1 : 1);
  const ranks = new Map(texts.map((text, i) => [text, -i]));
  return Float64Array.from(column, (x) => ranks.get(x) ?? 0);
}
