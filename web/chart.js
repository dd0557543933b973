// SPDX-License-Identifier: GPL-2.0-or-later
//
// Stacks of a task or a cpu in order of time.
import { h, clamp, binarySearch } from './base.js';
import { formatAxis, formatExact, formatTime, formatValue, plural } from './format.js';
import { binaryName, functionName, taskName } from './state.js';
import { rowValues } from './sums.js';
import { textColour, themeColours } from './colours.js';
import { ROW, AXIS, createScene, createViewport, createPalette, createFollower, createStrip, addGestures, viewportKey, isForOthers, listenKeys, drawAxis, drawGaps, drawRange, gapLines, eachInterval, intervalAt, openMenu, outline, copyText } from './canvas.js';

/** @typedef {import('./types.js').App} App */
/** @typedef {import('./types.js').View} View */
/** @typedef {import('./types.js').Rows} Rows */
/** @typedef {{kind: 'task' | 'cpu' | 'all', id: number}} ChartLane */

/**
 * Frames of one depth.
 *
 * @typedef {{nr: number, begin: Float64Array, end: Float64Array, stack: Uint32Array}} ChartLevel
 * @typedef {{rows: Uint32Array, begins: Float64Array, ends: Float64Array, levels: ChartLevel[]}} Chart
 * @typedef {{depth: number, at: number}} ChartFrame
 */

const FEWEST = 14; // px of a text

/** @param {App} app @returns {View} */
export function createChart(app) {
  /** @type {Chart} */
  let chart = { rows: new Uint32Array(0), begins: new Float64Array(0), ends: new Float64Array(0), levels: [] };
  /** @type {ChartLane} */
  let lane = { kind: 'all', id: 0 };
  /** @type {ChartFrame | null} */
  let cursor = null;
  /** @type {ChartFrame | null} */
  let hovered = null;
  let data = /** @type {App['data'] | null} */ (null);

  const view = createViewport(() => scene.redraw());
  const scene = createScene({ label: 'Stacks in order of time. Arrow keys walk, W, A, S and D move the view.', draw,
    className: 'chart' });
  const follower = createFollower(app, view);
  const strip = createStrip(scene);
  const palette = createPalette(app);
  const lanes = h('select', { 'aria-label': 'Task or CPU', onchange: () => {
    const [kind, id] = lanes.value.split(' ');
    lane = { kind: /** @type {ChartLane['kind']} */ (kind), id: Number(id) };
    rebuild();
    scene.draw();
  } });
  const note = h('span', { class: 'drawing-muted' });
  const focused = h('p', { class: 'drawing-status', 'aria-live': 'polite' });
  const element = h('div', { class: 'drawing-view' }, app.data.head.timed
    ? [h('div', { class: 'drawing-bar' }, lanes, note, h('span', { class: 'drawing-fill' }),
      h('span', { class: 'drawing-muted' }, 'Drag the axis, or with Shift, to select a time')), scene.element, focused]
    : h('p', { class: 'drawing-note' }, 'The samples of this recording have no times, so they have no order.'));

  const timeAt = (/** @type {number} */ x) => view.at(x, scene.width);
  addGestures(scene, view, { hover,
    drag: (x, y, event) => y < AXIS || event.shiftKey ? follower.drag(timeAt, x) : null,
    click: (x, y) => pick(frameAt(x, y)),
    double: (x, y) => zoomTo(frameAt(x, y)),
    menu: (x, y, event) => { pick(frameAt(x, y)); if (cursor) menu(event.clientX, event.clientY); } });
  listenKeys(scene, key);

  // Frames

  const stackOf = (/** @type {ChartFrame} */ { depth, at }) => chart.levels[depth].stack[at];
  const functionOf = (/** @type {ChartFrame} */ frame) => app.data.stacks.function[stackOf(frame)];

  /** @param {number} depth @param {number} time @param {number} [slack] @returns {ChartFrame | null} */
  function frameAtTime(depth, time, slack = 0) {
    const level = chart.levels[depth];
    if (!level) return null;
    const at = intervalAt(level, time);
    return at < level.nr && level.begin[at] <= time + slack ? { depth, at } : null;
  }

  /** @param {number} x @param {number} y */
  function frameAt(x, y) {
    const depth = Math.floor((y - AXIS + scene.scroll()) / ROW);
    return y < AXIS ? null : frameAtTime(depth, timeAt(x), (view.to - view.from) / scene.width);
  }

  // Drawing

  function draw() {
    if (!data) return;
    const { context, width, height } = scene;
    const scroll = scene.scroll();
    const colours = themeColours();
    const matches = app.matches();
    const { function: chosen } = app.choice;
    const { stacks } = app.data;
    const first = Math.max(Math.floor(scroll / ROW), 0);
    const last = Math.min(chart.levels.length, Math.ceil((scroll + height - AXIS) / ROW));
    for (let depth = first; depth < last; depth++) {
      const level = chart.levels[depth];
      const y = AXIS + depth * ROW - scroll;
      strip.begin();
      eachInterval(level, view, width, (i, x0, x1, nr) => {
        const stack = level.stack[i];
        const fn = stacks.function[stack];
        const colour = palette.of(fn, stacks.category[stack]);
        const match = matches && matches[fn];
        if (nr > 1) {
          strip.set(x0, fn === chosen ? colours.accent : colour, !!matches && !match);
          return;
        }
        const wide = x1 - x0;
        if (matches && !match) context.globalAlpha = 0.4;
        context.fillStyle = colour;
        context.fillRect(x0, y, wide > 3 ? wide - 1 : wide, ROW - 1);
        context.globalAlpha = 1;
        if (wide > FEWEST) {
          context.fillStyle = matches && !match ? colours.text : textColour(colour);
          scene.label(functionName(app.data, fn), Math.max(x0, 0) + 4, y + ROW / 2, Math.min(x1, width) - Math.max(x0, 0) - 8, true);
        }
        if (match && wide > 2) outline(context, colours.text, x0, y, wide - 1, 1);
        if (fn === chosen) outline(context, colours.accent, x0, y, Math.max(wide - 1, 1), 2);
        if (hovered?.depth === depth && hovered.at === i) outline(context, colours.muted, x0, y, wide - 1, 1);
        if (cursor?.depth === depth && cursor.at === i) outline(context, colours.text, x0, y, Math.max(wide - 1, 2), 2);
      });
      strip.draw(y);
    }
    drawGaps(scene, view, app.data.gaps, { ...(lane.kind === 'all' ? {} : { [lane.kind]: lane.id }), top: AXIS,
      height: Math.max(chart.levels.length * ROW - scroll, height - AXIS) });
    if (!chart.rows.length) {
      context.fillStyle = colours.muted;
      context.fillText('There are no samples of this event here.', 12, AXIS + 24);
    }
    drawRange(scene, view, app);
    drawAxis(scene, view, app.data.head.axis, { grid: false });
  }

  // What the user does

  /** @param {ChartFrame | null} frame @param {boolean} [replace] */
  function pick(frame, replace) {
    cursor = frame;
    focused.textContent = frame ? describe(frame) : '';
    scene.redraw();
    if (frame) app.choose({ function: functionOf(frame) }, replace);
  }

  /** @param {ChartFrame} frame */
  function extent({ depth, at }) {
    return { begin: chart.levels[depth].begin[at], end: chart.levels[depth].end[at] };
  }

  /** @param {ChartFrame} frame */
  function sumsOf(frame) {
    const { rows } = app.data;
    const value = rowValues(app, rows);
    const sums = { value: 0, samples: 0 };
    const { begin, end } = extent(frame);
    for (let i = binarySearch(chart.begins, begin); i < chart.rows.length && chart.ends[i] <= end; i++) {
      sums.value += value[chart.rows[i]];
      sums.samples += rows.count[chart.rows[i]];
    }
    return sums;
  }

  /** @param {ChartFrame} frame */
  function describe(frame) {
    const { begin, end } = extent(frame);
    const { axis } = app.data.head;
    return `${functionName(app.data, functionOf(frame))}: ${formatAxis(end - begin, axis)} from ${formatAxis(begin, axis)
    } on, ${plural(sumsOf(frame).samples, 'sample')}`;
  }

  /** @param {ChartFrame | null} frame */
  function zoomTo(frame) {
    if (!frame) return;
    const { begin, end } = extent(frame);
    view.set(begin - (end - begin) * 0.05, end + (end - begin) * 0.05, true);
  }

  /** @param {number} x @param {number} y @param {PointerEvent | null} event */
  function hover(x, y, event) {
    const frame = event && frameAt(x, y);
    if (frame?.at !== hovered?.at || frame?.depth !== hovered?.depth) scene.redraw();
    hovered = frame;
    if (!event) return app.tip(0, 0, null);
    const of = lane.kind === 'all' ? {} : { [lane.kind]: lane.id };
    const lines = frame ? tipLines(frame) : gapLines(app, timeAt(x), { ...of, slack: (view.to - view.from) / scene.width });
    return app.tip(event.clientX, event.clientY, lines.length ? lines : null);
  }

  /** @param {ChartFrame} frame */
  function tipLines(frame) {
    const { axis, events, quantum } = app.data.head;
    const fn = functionOf(frame);
    const { begin, end } = extent(frame);
    const { value, samples } = sumsOf(frame);
    /** @type {(string | [string, string])[]} */
    const lines = [functionName(app.data, fn)];
    if (binaryName(app.data, fn)) lines.push(['Binary', binaryName(app.data, fn)]);
    lines.push(['Duration', formatAxis(end - begin, axis)], ['Begin', formatAxis(begin, axis)],
      ['Samples', formatExact(samples)], ['Value', formatValue(value, events[app.choice.event])]);
    if (app.data.stacks.inlined[stackOf(frame)]) lines.push('inlined into its caller');
    if (quantum) lines.push(`Samples are summed up over ${formatTime(quantum)}: within that time, the heaviest stack is first.`);
    return lines;
  }

  /** @param {number} x @param {number} y */
  function menu(x, y) {
    app.tip(0, 0, null);
    const frame = /** @type {ChartFrame} */ (cursor);
    const { begin, end } = extent(frame);
    openMenu(x, y, [
      { text: 'Zoom', key: 'Enter', run: () => zoomTo(frame) },
      { text: 'Select its time', run: () => app.choose({ range: [Math.floor(begin), Math.ceil(end)] }) },
      { text: 'Show this function', run: () => app.choose({ function: functionOf(frame), tab: 'function' }) },
      { text: 'Copy name', run: () => copyText(functionName(app.data, functionOf(frame)), app) }], scene.canvas);
  }

  /** @param {ChartFrame | null} frame */
  function walkTo(frame) {
    if (!frame || frame.at < 0 || frame.at >= chart.levels[frame.depth].nr) return;
    pick(frame, true);
    const { begin, end } = extent(frame);
    const length = view.to - view.from;
    if ((end - begin) / length * scene.width < 2) view.set(begin - (end - begin) * 15, end + (end - begin) * 15, true);
    else if (end < view.from || begin > view.to) view.set(begin - length / 3, begin + length * 2 / 3, true);
    const y = AXIS + frame.depth * ROW - scene.scroll();
    if (y < AXIS) scene.element.scrollTop -= AXIS - y;
    else if (y + ROW > scene.height) scene.element.scrollTop += y + ROW - scene.height;
  }

  /** @param {KeyboardEvent} event */
  function key(event) {
    if (isForOthers(event)) return false;
    const from = cursor ?? frameAtTime(0, (view.from + view.to) / 2, view.to);
    if (event.key.startsWith('Arrow') && from) {
      const { depth, at } = from;
      if (!cursor) walkTo(from);
      else if (event.key === 'ArrowLeft') walkTo({ depth, at: at - 1 });
      else if (event.key === 'ArrowRight') walkTo({ depth, at: at + 1 });
      else if (event.key === 'ArrowUp') walkTo(depth ? frameAtTime(depth - 1, extent(from).begin) : null);
      else walkTo(childOf(from));
      return true;
    }
    if (event.key === 'Enter' && cursor) zoomTo(cursor);
    else if (event.key === 'm' && cursor) {
      const box = scene.canvas.getBoundingClientRect();
      menu(box.left + clamp(view.x(extent(cursor).begin, scene.width), 0, scene.width - 50), box.top + AXIS);
    } else if (event.key === 'Escape' && app.choice.range) app.choose({ range: null });
    else return viewportKey(event, view);
    return true;
  }

  /** @param {ChartFrame} frame */
  function childOf(frame) {
    const { begin, end } = extent(frame);
    const child = frameAtTime(frame.depth + 1, begin, end - begin);
    return child && extent(child).begin < end ? child : null;
  }

  /** @param {1 | -1} direction */
  function find(direction) {
    const matches = app.matches();
    if (!matches || !chart.rows.length) return;
    const { stacks, rows } = app.data;
    // By stack: the depth of the outermost function that matches, plus 1.
    const depths = new Uint32Array(stacks.nr);
    const depthOf = stackDepths(stacks);
    for (let i = 1; i < stacks.nr; i++)
      depths[i] = depths[stacks.parent[i]] || (matches[stacks.function[i]] ? depthOf[i] : 0);
    const start = cursor ? extent(cursor) : { begin: view.to, end: view.from };
    let at = direction > 0 ? binarySearch(chart.begins, start.end) : binarySearch(chart.begins, start.begin) - 1;
    while (at >= 0 && at < chart.rows.length && !depths[rows.stack[chart.rows[at]]]) at += direction;
    if (at < 0 || at >= chart.rows.length) {
      app.say('There is no further match in this direction.');
      return;
    }
    walkTo(frameAtTime(depths[rows.stack[chart.rows[at]]] - 1, chart.begins[at]));
    app.say(focused.textContent ?? '');
  }

  // Updates

  function listLanes() {
    const { rows, tasks } = app.data;
    const cpuTotals = new Map();
    const taskTotals = new Map();
    const value = rowValues(app, rows);
    const sums = new Float64Array(tasks.nr);
    for (let i = 0; i < rows.nr; i++) {
      if (rows.event[i] !== app.choice.event) continue;
      sums[rows.task[i]] += value[i];
      cpuTotals.set(rows.cpu[i], (cpuTotals.get(rows.cpu[i]) ?? 0) + value[i]);
    }
    sums.forEach((sum, task) => { if (sum) taskTotals.set(task, sum); });
    const busiest = [...taskTotals.keys()].sort((a, b) => tasks.idle[a] - tasks.idle[b]
      || taskTotals.get(b) - taskTotals.get(a)).slice(0, 500);
    const cpus = [...cpuTotals.keys()].filter(Boolean).sort((a, b) => a - b);
    const option = (/** @type {string} */ value_, /** @type {string} */ text) => h('option', { value: value_ }, text);
    lanes.replaceChildren(
      h('optgroup', { label: 'Tasks, the busiest first' }, busiest.map((id) => option(`task ${id}`, taskName(app.data, id)))),
      h('optgroup', { label: 'CPUs' }, cpus.map((id) => option(`cpu ${id}`, `CPU ${id - 1}`))));
    const { task, cpu } = app.choice;
    if (task !== null) lane = { kind: 'task', id: task };
    else if (cpu !== null) lane = { kind: 'cpu', id: cpu };
    else if (!(lane.kind === 'task' ? taskTotals : cpuTotals).has(lane.id) || lane.kind === 'all')
      lane = busiest.length ? { kind: 'task', id: busiest[0] } : { kind: 'all', id: 0 };
    // One that is not in the list.
    if (task !== null && !busiest.includes(task)) lanes.prepend(option(`task ${task}`, taskName(app.data, task)));
    lanes.value = `${lane.kind} ${lane.id}`;
  }

  function rebuild() {
    chart = buildChart(app, lane);
    cursor = hovered = null;
    focused.textContent = '';
    const { quantum } = app.data.head;
    note.textContent = `${plural(chart.rows.length, quantum ? 'sum' : 'sample')}${quantum ? ` of samples over ${
      formatTime(quantum)}, the heaviest first` : ''}`;
    scene.setContent(chart.levels.length * ROW + AXIS);
  }

  /** @param {Set<string>} changed */
  function update(changed) {
    if (!app.data.head.timed) return;
    const fresh = data !== app.data;
    if (fresh || changed.has('theme') || changed.has('colours')) palette.forget();
    if (fresh) {
      data = app.data;
      view.limit(0, data.head.length, data.head.axis === 'ns' ? 20 : 10);
    }
    if (fresh || ['event', 'task', 'cpu'].some((one) => changed.has(one))) listLanes();
    if (fresh || ['event', 'task', 'cpu', 'hidden', 'focus'].some((one) => changed.has(one))) rebuild();
    if (fresh || changed.has('range')) follower.follow(!fresh);
    scene.draw();
  }

  return { id: 'chart', label: 'Time order', element, update, key, find };
}

/** @param {import('./types.js').Stacks} stacks */
function stackDepths({ nr, parent }) {
  const depths = new Uint32Array(nr);
  for (let i = 1; i < nr; i++) depths[i] = depths[parent[i]] + 1;
  return depths;
}

/** Stacks with hidden functions, or without the one that is in focus, are left out. @param {App} app */
function shownStacks({ data: { stacks }, choice: { hidden, focus } }) {
  const drops = new Set(hidden);
  const state = new Uint8Array(stacks.nr); // 1: it has the focus; 2: left out
  state[0] = focus === null ? 1 : 0;
  for (let i = 1; i < stacks.nr; i++) {
    const fn = stacks.function[i];
    state[i] = drops.has(fn) ? 2 : state[stacks.parent[i]] || (fn === focus ? 1 : 0);
  }
  return state;
}

/** The lane's rows, and when they begin and end. @param {App} app @param {ChartLane} lane */
function laneRows(app, lane) {
  const { rows, head } = app.data;
  const { event, cpu, task } = app.choice;
  const shown = shownStacks(app);
  const found = new Uint32Array(rows.nr);
  let nr = 0;
  for (let i = 0; i < rows.nr; i++)
    if (rows.event[i] === event && shown[rows.stack[i]] === 1 && (lane.kind === 'all' || rows[lane.kind][i] === lane.id)
      && (cpu === null || rows.cpu[i] === cpu) && (task === null || rows.task[i] === task)) found[nr++] = i;
  const chosen = found.slice(0, nr);
  const begins = Float64Array.from(chosen, (row) => rows.time[row]);
  if (rows.length) {
    const lengths = rows.length;
    return { rows: chosen, begins, ends: begins.map((begin, i) => begin + lengths[chosen[i]]) };
  }
  return head.quantum ? placeInQuanta(app, chosen, begins) : { rows: chosen, begins, ends: sampleEnds(begins, head.length) };
}

/** A sample lasts until the next one, but not much longer than usual. @param {Float64Array} begins @param {number} length */
function sampleEnds(begins, length) {
  const every = Math.ceil(begins.length / 20000);
  const distances = [];
  for (let i = every; i < begins.length; i += every) distances.push(begins[i] - begins[i - 1]);
  const typical = Float64Array.from(distances).sort()[distances.length >> 1] || length / 100;
  return begins.map((begin, i) => {
    const next = i + 1 < begins.length ? begins[i + 1] : Infinity;
    return next - begin <= 1.5 * typical ? next : begin + typical;
  });
}

/** Rows of the same time, side by side. @param {App} app @param {Uint32Array} rows @param {Float64Array} begins */
function placeInQuanta(app, rows, begins) {
  const { quantum, events, axis } = app.data.head;
  const value = rowValues(app, app.data.rows);
  const { unit, weighs } = events[app.choice.event];
  const ends = new Float64Array(rows.length);
  for (let from = 0, to; from < rows.length; from = to) {
    const begin = begins[from];
    for (to = from + 1; to < rows.length && begins[to] === begin;) to++;
    const some = rows.subarray(from, to).sort((a, b) => value[b] - value[a]);
    const sum = some.reduce((total, row) => total + value[row], 0);
    const scale = quantum / (unit === 'ns' && weighs && axis === 'ns' ? Math.max(sum, quantum) : sum || 1);
    let at = begin;
    for (let i = from; i < to; i++) {
      begins[i] = at;
      ends[i] = at += value[rows[i]] * scale;
    }
  }
  return { rows, begins, ends };
}

/** @param {App} app @param {ChartLane} lane @returns {Chart} */
function buildChart(app, lane) {
  const { stacks, rows: all } = app.data;
  const { rows, begins, ends } = laneRows(app, lane);
  const depths = stackDepths(stacks);
  /** @type {ChartLevel[]} */
  const levels = [];
  /** @type {number[]} stacks of the last sample, by depth */
  const path = [];
  let open = 0;
  const close = (/** @type {number} */ from, /** @type {number} */ last) => {
    for (let depth = from; depth < open; depth++) levels[depth].end[levels[depth].nr - 1] = ends[last];
  };
  for (let i = 0; i < rows.length; i++) {
    const stack = all.stack[rows[i]];
    const depth = depths[stack];
    const goesOn = i > 0 && begins[i] <= ends[i - 1];
    let common = depth;
    for (let at = stack; common && !(goesOn && common <= open && path[common - 1] === at); at = stacks.parent[at])
      path[--common] = at;
    close(common, i - 1);
    for (let j = common; j < depth; j++) addFrame(levels, j, begins[i], path[j]);
    open = depth;
  }
  close(0, rows.length - 1);
  return { rows, begins, ends, levels };
}

/** @param {ChartLevel[]} levels @param {number} depth @param {number} begin @param {number} stack */
function addFrame(levels, depth, begin, stack) {
  let level = levels[depth];
  if (!level || level.nr === level.stack.length) level = levels[depth] = growLevel(level);
  level.begin[level.nr] = begin;
  level.stack[level.nr++] = stack;
}

/** @param {ChartLevel | undefined} level @returns {ChartLevel} with more room */
function growLevel(level) {
  const room = level ? 2 * level.nr : 64;
  const grown = { nr: level?.nr ?? 0, begin: new Float64Array(room), end: new Float64Array(room), stack: new Uint32Array(room) };
  if (level) {
    grown.begin.set(level.begin);
    grown.end.set(level.end);
    grown.stack.set(level.stack);
  }
  return grown;
}
