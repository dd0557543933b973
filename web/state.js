// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the user has chosen, and the URL's hash.

/** @typedef {import('./types.js').Dataset} Dataset */
/** @typedef {import('./types.js').Choice} Choice */
/**
 * @typedef {{toHash: (x: any, data: Dataset) => string, fromHash: (text: string, data: Dataset)
 *   => any}} Coder
 */

/** @param {Dataset} data @returns {Choice} */
export function defaultChoice(data) {
  return { tab: 'flame', event: 0, range: null, cpu: null, task: null, search: '', function: null,
    hidden: [],
    collapsed: [], focus: null, recursion: false, inverted: false, direction: 'flame',
      order: 'name',
    colours: 'binary', theme: 'auto', zoom: [], sort: data.before ? 'change'
      : 'self', compare: 'share' };
}

/** @type {WeakMap<Dataset, {names: string[], numbers: Map<string, number>}>} */
const functionNames = new WeakMap();

/** @param {Dataset} data */
function namesOf(data) {
  let names = functionNames.get(data);
  if (!names) functionNames.set(data, names = nameFunctions(data));
  return names;
}

/** Gives each function a name that is only its own, as links have names. @param {Dataset} data */
function nameFunctions(data) {
  const names = [];
  const numbers = new Map();
  for (let i = 0; i < data.functions.nr; i++) {
    const binary = data.strings[data.functions.binary[i]];
    const name = data.strings[data.functions.name[i]] + (binary ? `@${binary}` : '');
    let own = name;
    for (let n = 2; numbers.has(own); n++) own = `${name}~${n}`;
    numbers.set(own, i);
    names.push(own);
  }
  return { names, numbers };
}

/** As encodeURIComponent, but what is harmless in a hash stays readable. @param {string} text */
function readable(text) {
  return encodeURIComponent(text).replace(/%(3A|40|2F|24|3B|3F|5B|5D|20)/g, (code) =>
    code === '%20' ? '+' : decodeURIComponent(code));
}

/** @param {string} text */
function fromReadable(text) {
  try {
    return decodeURIComponent(text.replace(/\+/g, ' '));
  } catch {
    return text;
  }
}

/** @type {Coder} */
const textCoder = { toHash: readable, fromHash: fromReadable };
/** @type {Coder} */
const flagCoder = { toHash: (x) => x ? '1' : '0', fromHash: (text) => text === '1' };
/** @type {Coder} */
const functionCoder = {
  toHash: (x, data) => readable(namesOf(data).names[x] ?? ''),
  fromHash: (text, data) => namesOf(data).numbers.get(fromReadable(text)) ?? null,
};
/** @type {Coder} */
const binaryCoder = {
  toHash: (x, data) => readable(data.strings[x] ?? ''),
  fromHash: (text, data) => data.strings.indexOf(fromReadable(text), 1),
};
/** @type {Coder} */
const taskCoder = {
  toHash: (x, data) => readable(
    `${data.strings[data.tasks.name[x]]}:${data.tasks.pid[x] - 1}:${data.tasks.tid[x] - 1}`),
  fromHash: (text, data) => {
    for (let i = 0; i < data.tasks.nr; i++) if (taskCoder.toHash(i, data) === text) return i;
    return null;
  },
};

/**
 * Samples that are summed up cannot be divided: a range has all of a quantum, or nothing.
 *
 * @param {[number, number]} range
 * @param {Dataset['head']} head
 * @returns {[number, number]}
 */
export function wholeQuanta([begin, end], { quantum, length }) {
  if (!quantum) return [begin, end];
  const whole = Math.ceil(end / quantum) * quantum;
  return [Math.floor(begin / quantum) * quantum, Math.min(whole, Math.max(length, end))];
}

/** @param {...string} values @returns {Coder} */
function oneOf(...values) {
  return { toHash: String, fromHash: (text) => values.includes(text) ? text : undefined };
}

/** @param {Coder} coder @returns {Coder} */
function listCoder(coder) {
  return {
    toHash: (list, data) => list.map((/** @type {any} */ x) => coder.toHash(x, data)).join(','),
    fromHash: (text, data) => text.split(',').map((part) => coder.fromHash(part, data))
      .filter((x) => x !== null && x >= 0),
  };
}

/**
 * The names in the hash, and how their values are written.
 *
 * @type {Record<string, [keyof Choice, Coder]>}
 */
const CODERS = {
  tab: ['tab', textCoder],
  event: ['event', {
    toHash: (x, data) => readable(data.head.events[x]?.name ?? ''),
    fromHash: (text, data) =>
      Math.max(0, data.head.events.findIndex(({ name }) => name === fromReadable(text))),
  }],
  time: ['range', {
    toHash: (range) => range.map((/** @type {number} */ x) => Math.round(x)).join('-'),
    fromHash: (text, { head }) => {
      const [begin, end] = text.split('-').map(Number);
      return end > begin ? wholeQuanta([begin, end], head) : null;
    },
  }],
  cpu: ['cpu', { toHash: (x) => String(x - 1), fromHash: (text) => /^-?\d+$/.test(text)
    ? Number(text) + 1 : null }],
  task: ['task', taskCoder],
  search: ['search', textCoder],
  fn: ['function', functionCoder],
  hide: ['hidden', listCoder(functionCoder)],
  collapse: ['collapsed', listCoder(binaryCoder)],
  focus: ['focus', functionCoder],
  recursion: ['recursion', flagCoder],
  inverted: ['inverted', flagCoder],
  direction: ['direction', oneOf('flame', 'icicle')],
  order: ['order', oneOf('name', 'heavy')],
  colours: ['colours', oneOf('binary', 'category', 'name')],
  theme: ['theme', oneOf('auto', 'light', 'dark')],
  zoom: ['zoom', listCoder(functionCoder)],
  sort: ['sort', textCoder],
  compare: ['compare', oneOf('share', 'absolute')],
};

/**
 * @param {Choice} choice
 * @param {Dataset} data
 * @returns {string} without #; only what is not as by default
 */
export function choiceToHash(choice, data) {
  const defaults = defaultChoice(data);
  const parts = [];
  for (const [name, [key, coder]] of Object.entries(CODERS))
    if (!sameValue(choice[key], defaults[key]))
      parts.push(`${name}=${coder.toHash(choice[key], data)}`);
  return parts.join('&');
}

/** @param {string} hash with or without # @param {Dataset} data @returns {Choice} */
export function hashToChoice(hash, data) {
  const choice = defaultChoice(data);
  for (const part of hash.replace(/^#/, '').split('&')) {
    const [name, ...rest] = part.split('=');
    if (!rest.length || !Object.hasOwn(CODERS, name)) continue;
    const [key, coder] = CODERS[name];
    const value = coder.fromHash(rest.join('='), data);
    if (value !== undefined) /** @type {any} */ (choice)[key] = value;
  }
  return choice;
}

/** @param {any} a @param {any} b @returns {boolean} whether two values of a choice are the same */
export function sameValue(a, b) {
  if (!Array.isArray(a) || !Array.isArray(b)) return a === b;
  return a.length === b.length && a.every((x, i) => x === b[i]);
}

/** @param {Dataset} data @param {number} fn */
export function functionName(data, fn) {
  return data.strings[data.functions.name[fn]] || '[unknown]';
}

/** @param {Dataset} data @param {number} fn @returns {string} '' if it is unknown */
export function binaryName(data, fn) {
  return data.strings[data.functions.binary[fn]] ?? '';
}

/** @param {Dataset} data @param {number} task as in rows @returns {string} */
export function taskName(data, task) {
  const { name, pid, tid } = data.tasks;
  const ids = [pid[task], tid[task]].filter((x, i, all) => x && (i === 0 || x !== all[0]))
    .map((x) => x - 1).join('/');
  return [data.strings[name[task]] || (ids ? '' : 'unknown task'), ids].filter(Boolean).join(' ');
}
