// SPDX-License-Identifier: GPL-2.0-or-later
//
// Unpacks the recording, and puts two of them together.

/** @typedef {import('./types.js').Dataset} Dataset */
/** @typedef {import('./types.js').Rows} Rows */
/** @typedef {import('./types.js').Head} Head */
/** @typedef {import('./types.js').Numbers} Numbers */
/** @typedef {{packing: string, take: () => string}} Packed the text is taken once: it is as large as the data */
/** @typedef {(id: string) => Packed | null} Lookup */
/** @typedef {any} Table its columns by name, and `nr` */
/** @typedef {{tables: Record<string, Table>, json: Record<string, any>}} Block */
/** @typedef {'slices' | 'allocs' | 'code'} LazyBlock */

/** @type {Record<string, string>} */
const TABLES = {
  functions: 'name binary file line',
  stacks: 'parent function category inlined',
  tasks: 'name pid tid idle',
  rows: 'time weight count cpu task event stack place',
  gaps: 'begin end samples bytes cpu task',
  places: 'offset function file line',
  slices: 'begin length instructions ownInstructions cycles ownCycles lines ownLines track function task kind cut',
  allocs: 'time size blocks stack task heap',
};

/** A message for the user about the data of the page. */
class DataError extends Error {}

/** @param {Document} document @returns {Promise<Dataset>} */
export function loadData(document) {
  return loadBlocks((id) => {
    const element = document.getElementById(id);
    return element && { packing: element.dataset.packing ?? '', take: () => {
      const text = element.textContent ?? '';
      element.textContent = '';
      return text;
    } };
  });
}

/**
 * @param {Lookup} lookup of a block: 'data-core'...
 * @returns {Promise<Dataset>}
 */
export async function loadBlocks(lookup) {
  const [data, old] = await Promise.all([loadRecording(lookup, 'data'),
    lookup('before-core') ? loadRecording(lookup, 'before') : null]);
  if (old) mergeBefore(data, old);
  return data;
}

/** @param {Lookup} lookup @param {string} prefix @returns {Promise<Dataset>} */
async function loadRecording(lookup, prefix) {
  const [core, rows] = await Promise.all([unpackBlock(lookup, `${prefix}-core`),
    unpackBlock(lookup, `${prefix}-rows`)]);
  const { functions, stacks, tasks } = core.tables;
  const { head, strings } = core.json;
  /** @type {Dataset} */
  const data = { head, strings, functions, stacks, tasks, places: rows.tables.places,
    rows: rows.tables.rows,
    gaps: rows.tables.gaps, before: null, slices: null, allocs: null, code: null,
    blocks: new Set(['slices', 'allocs', 'code'].filter((name) => lookup(`${prefix}-${name}`))),
    load: (name) => loading[name] ??= loadLazy(data, name, lookup, prefix) };
  /** @type {Partial<Record<LazyBlock, Promise<void>>>} */
  const loading = {};
  checkTables(data);
  return data;
}

/** @param {Dataset} data @param {LazyBlock} name @param {Lookup} lookup @param {string} prefix */
async function loadLazy(data, name, lookup, prefix) {
  if (!data.blocks.has(name)) return;
  const { tables, json } = await unpackBlock(lookup, `${prefix}-${name}`);
  if (name === 'code') {
    data.code = decodeCode(json);
  } else if (name === 'allocs') {
    checkBelow(tables.allocs.stack, data.stacks.nr, 'allocs.stack');
    data.allocs = /** @type {any} */ (tables.allocs);
  } else {
    checkBelow(tables.slices.function, data.functions.nr + 1, 'slices.function');
    checkBelow(tables.slices.track, json.tracks.length, 'slices.track');
    data.slices = /** @type {any} */ ({ ...tables.slices, tracks: json.tracks, kinds: json.kinds });
  }
}

/** @param {Record<string, any>} json @returns {import('./types.js').Code} */
function decodeCode(json) {
  const insn = (/** @type {any[]} */ [offset, text, file, line]) => ({ offset, text, file, line });
  return {
    functions: new Map(json.functions.map((/** @type {any[]} */ [number, start, insns]) =>
      [number, { start, insns: insns.map(insn) }])),
    sources: new Map(json.sources.map((/** @type {any[]} */ [file, parts]) =>
      [file, parts.map((/** @type {any[]} */ [first, lines]) => ({ first, lines }))])),
  };
}

/** @param {Lookup} lookup @param {string} id @returns {Promise<Block>} */
async function unpackBlock(lookup, id) {
  const packed = lookup(id);
  if (!packed) throw new DataError(`The page has no block “${id}”: it is not complete.`);
  try {
    return decodeBlock(await unpack(packed));
  } catch (error) {
    if (error instanceof DataError) throw error;
    const why = error instanceof Error ? error.message : error;
    throw new DataError(`The block “${id}” of the page is damaged: ${why}`);
  }
}

/** @param {Packed} packed @returns {Promise<Uint8Array>} */
async function unpack({ packing, take }) {
  const bytes = fromBase64(take());
  if (packing === 'none') return bytes;
  if (packing !== 'gzip')
    throw new DataError(`The page has data in an unknown packing, “${packing}”.`);
  if (typeof DecompressionStream === 'undefined')
    throw new DataError('This browser is too old: it cannot decompress data.');
  const stream = new Blob([/** @type {any} */ (bytes)]).stream()
    .pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer().catch(() => {
    throw new Error('it cannot be decompressed');
  }));
}

/** @param {string} text @returns {Uint8Array} */
function fromBase64(text) {
  const direct = /** @type {any} */ (Uint8Array).fromBase64;
  if (direct) return direct.call(Uint8Array, text);
  const packed = /\s/.test(text) ? text.replace(/\s+/g, '') : text;
  const size = packed.length / 4 * 3 - (packed.endsWith('==') ? 2 : packed.endsWith('=') ? 1 : 0);
  const bytes = new Uint8Array(size);
  // In parts, as otherwise atob would make another string of the whole size.
  for (let from = 0, to = 0; from < packed.length; from += 1 << 18) {
    const part = atob(packed.slice(from, from + (1 << 18)));
    for (let i = 0; i < part.length; i++) bytes[to++] = part.charCodeAt(i);
  }
  return bytes;
}

/** @param {Uint8Array} bytes @returns {Block} */
function decodeBlock(bytes) {
  const end = bytes.length - 4;
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(end, true);
  if (size > end) throw new Error('it is cut off');
  const json = JSON.parse(new TextDecoder().decode(bytes.subarray(end - size, end)));
  /** @type {Record<string, Table>} */
  const tables = {};
  let at = 0;
  for (const [name, count, length, kind, value] of json.columns) {
    const [table, column] = name.split('.');
    // A column that a later version of kscope may add is no error.
    if (columnsOf(table).includes(column) || name === 'rows.length')
      (tables[table] ??= { nr: count })[column] = decodeColumn(bytes, at, at + length, count, kind, value);
    at += length;
    if (at > end - size) throw new Error('its columns are too long');
  }
  for (const [name, table] of Object.entries(tables)) completeTable(name, table);
  return { tables, json };
}

/** @param {string} table */
function columnsOf(table) {
  return TABLES[table]?.split(' ') ?? [];
}

/** Columns that are missing are 0. @param {string} name @param {Table} table */
function completeTable(name, table) {
  for (const column of columnsOf(name)) table[column] ??= new Uint8Array(table.nr);
  if (name === 'rows') table.length ??= null;
  for (const [column, array] of Object.entries(table))
    if (array && typeof array === 'object' && array.length !== table.nr)
      throw new Error(`${name}.${column} is too short`);
}

/**
 * @param {Uint8Array} bytes
 * @param {number} at
 * @param {number} end
 * @param {number} count
 * @param {string} kind
 * @param {number} value
 * @returns {Numbers}
 */
function decodeColumn(bytes, at, end, count, kind, value) {
  /** @type {Numbers} */
  let array = new Uint8Array(count);
  if (kind === 'c') return widened(array, 0, value).fill(value);
  if (kind !== 'u' && kind !== 'd') throw new Error(`unknown column kind “${kind}”`);
  const differences = kind === 'd';
  let sum = 0;
  for (let i = 0; i < count; i++) {
    let byte = bytes[at++];
    let x = byte & 0x7f;
    // Most numbers have few bytes, for which whole numbers are faster.
    for (let shift = 7; byte >= 0x80 && shift < 28; shift += 7) {
      byte = bytes[at++];
      x |= (byte & 0x7f) << shift;
    }
    if (byte < 0x80) {
      if (differences) x = (x >>> 1) ^ -(x & 1);
    } else {
      for (let scale = 2 ** 28; byte >= 0x80; scale *= 128) {
        byte = bytes[at++];
        x += (byte & 0x7f) * scale;
      }
      if (differences) x = x % 2 ? -(x + 1) / 2 : x / 2;
    }
    if (differences) x = sum += x;
    array[i] = x;
    // One that does not fit is another one when it is read.
    if (array[i] === x) continue;
    array = widened(array, i, x);
    array[i] = x;
  }
  if (at !== end) throw new Error('a column has another length');
  return array;
}

/**
 * @param {Numbers} array
 * @param {number} nr how many of its numbers are used
 * @param {number} x
 * @returns {Numbers} with room for numbers such as x, too
 */
function widened(array, nr, x) {
  const Type = x < 0 || x > 0xffffffff ? Float64Array : x > 0xffff ? Uint32Array : x > 0xff ? Uint16Array : Uint8Array;
  if (Type.BYTES_PER_ELEMENT <= array.BYTES_PER_ELEMENT) return array;
  const wide = new Type(array.length);
  wide.set(array.subarray(0, nr));
  return wide;
}

/** @param {ArrayLike<number>} array @param {number} limit @param {string} name */
function checkBelow(array, limit, name) {
  for (let i = 0; i < array.length; i++)
    if (!(array[i] < limit))
      throw new DataError(`The data of the page is damaged: ${name} is out of range.`);
}

/** The views rely on numbers that are in range. @param {Dataset} data */
function checkTables(data) {
  const { functions, stacks, tasks, places, rows, strings, head } = data;
  for (const [name, table] of Object.entries({ functions, stacks, places, rows }))
    if (!table) throw new DataError(`The data of the page is damaged: it has no ${name}.`);
  data.tasks ??= emptyTable('tasks');
  data.gaps ??= emptyTable('gaps');
  for (const column of [functions.name, functions.binary, functions.file])
    checkBelow(column, strings.length, 'strings');
  checkBelow(stacks.function, Math.max(functions.nr, 1), 'stacks.function');
  checkBelow(places.function, Math.max(functions.nr, 1), 'places.function');
  checkBelow(rows.stack, stacks.nr, 'rows.stack');
  checkBelow(rows.place, places.nr, 'rows.place');
  checkBelow(rows.event, head.events.length, 'rows.event');
  if (tasks) checkBelow(rows.task, Math.max(tasks.nr, 1), 'rows.task');
  for (let i = 1; i < stacks.nr; i++)
    if (stacks.parent[i] >= i)
      throw new DataError('The data of the page is damaged: stacks.parent is out of range.');
}

/** @param {string} name @returns {any} */
function emptyTable(name) {
  const table = { nr: 0 };
  completeTable(name, table);
  return table;
}

/**
 * Puts the tables of the old recording into those of the new one.
 *
 * @param {Dataset} data
 * @param {Dataset} old
 */
function mergeBefore(data, old) {
  data.head.title = `${old.head.title} → ${data.head.title}`;
  const strings = mergeStrings(data, old);
  const text = (/** @type {Numbers} */ column, /** @type {number} */ i) => strings[column[i]];
  const functions = mergeTable(data, 'functions', old.functions, (t, i, own) => own
    ? `${t.name[i]} ${t.binary[i]}` : `${text(t.name, i)} ${text(t.binary, i)}`,
  { name: strings, binary: strings, file: strings });
  const tasks = mergeTable(data, 'tasks', old.tasks, (t, i, own) =>
    `${own ? t.name[i] : text(t.name, i)} ${t.pid[i]} ${t.tid[i]}`, { name: strings });
  const stacks = mergeStacks(data, old, functions);
  const places = appendTable(data, 'places', old.places, { function: functions, file: strings });
  const events = old.head.events.map((event) => {
    const index = data.head.events.findIndex(({ name }) => name === event.name);
    return index >= 0 ? index : data.head.events.push({ ...event, samples: 0, weight: 0 }) - 1;
  });
  const remap = (/** @type {Numbers} */ column, /** @type {ArrayLike<number>} */ map) =>
    Uint32Array.from(column, (x) => map[x]);
  const { rows } = old;
  data.before = { ...rows, task: remap(rows.task, tasks), event: remap(rows.event, events),
    stack: remap(rows.stack, stacks), place: remap(rows.place, places) };
  data.head.facts.push(...old.head.facts.map(
    ([key, value]) => /** @type {[string, string]} */ ([`before: ${key}`, value])));
}

/**
 * @param {Dataset} data
 * @param {Dataset} old
 * @returns {Uint32Array} the numbers of the old strings
 */
function mergeStrings(data, old) {
  const numbers = new Map(data.strings.map((text, i) => [text, i]));
  return Uint32Array.from(old.strings, (text, i) => {
    let number = i ? numbers.get(text) : 0;
    if (number === undefined) numbers.set(text, number = data.strings.push(text) - 1);
    return number;
  });
}

/**
 * Appends rows of a table that are not yet in data's.
 *
 * @param {Dataset} data
 * @param {'functions' | 'tasks'} name
 * @param {Table} old
 * @param {(table: any, i: number, own: boolean) => string} key
 * @param {Record<string, Uint32Array>} maps columns whose numbers change
 * @returns {Uint32Array} the numbers of the old rows
 */
function mergeTable(data, name, old, key, maps) {
  const own = data[name];
  const numbers = new Map();
  for (let i = own.nr - 1; i >= 0; i--) numbers.set(key(own, i, true), i);
  const added = [];
  const result = new Uint32Array(old.nr);
  for (let i = 0; i < old.nr; i++) {
    const text = key(old, i, false);
    let number = numbers.get(text);
    if (number === undefined) numbers.set(text, number = own.nr + added.push(i) - 1);
    result[i] = number;
  }
  data[name] = extendTable(own, old, added, maps);
  return result;
}

/**
 * @param {Dataset} data
 * @param {'places'} name
 * @param {Table} old
 * @param {Record<string, Uint32Array>} maps
 */
function appendTable(data, name, old, maps) {
  const first = data[name].nr;
  data[name] = extendTable(data[name], old, Array.from({ length: old.nr }, (_, i) => i), maps);
  return Uint32Array.from({ length: old.nr }, (_, i) => i ? first + i : 0);
}

/**
 * @param {Table} own
 * @param {Table} old
 * @param {number[]} added
 * @param {Record<string, Uint32Array>} maps
 * @returns {any}
 */
function extendTable(own, old, added, maps) {
  /** @type {Table} */
  const table = { nr: own.nr + added.length };
  for (const [column, values] of Object.entries(own)) {
    if (column === 'nr') continue;
    const wide = [values, old[column]].some((one) => one instanceof Float64Array);
    const all = table[column] = wide ? new Float64Array(table.nr) : new Uint32Array(table.nr);
    all.set(values);
    for (let i = 0; i < added.length; i++) {
      const value = old[column][added[i]];
      all[own.nr + i] = maps[column] ? maps[column][value] : value;
    }
  }
  return table;
}

/**
 * @param {Dataset} data
 * @param {Dataset} old
 * @param {Uint32Array} functions
 * @returns {Uint32Array} numbers of old stacks
 */
function mergeStacks(data, old, functions) {
  const own = data.stacks;
  const categories = old.head.categories.map((name) => {
    const index = data.head.categories.indexOf(name);
    return index >= 0 ? index : data.head.categories.push(name) - 1;
  });
  const key = (/** @type {number} */ parent, /** @type {number} */ fn) => parent * 2 ** 26 + fn;
  const numbers = new Map();
  for (let i = own.nr - 1; i > 0; i--) numbers.set(key(own.parent[i], own.function[i]), i);
  const result = new Uint32Array(old.stacks.nr);
  const added = [];
  const parents = [];
  for (let i = 1; i < old.stacks.nr; i++) {
    const parent = result[old.stacks.parent[i]];
    const place = key(parent, functions[old.stacks.function[i]]);
    let number = numbers.get(place);
    if (number === undefined) {
      numbers.set(place, number = own.nr + added.push(i) - 1);
      parents.push(parent);
    }
    result[i] = number;
  }
  data.stacks = extendTable(own, old.stacks, added,
    { function: functions, category: Uint32Array.from(categories) });
  parents.forEach((parent, i) => { data.stacks.parent[own.nr + i] = parent; });
  return result;
}
