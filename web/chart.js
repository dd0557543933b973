// SPDX-License-Identifier: GPL-2.0-or-later
//
// Stacks of a task or a cpu in order of time.
import { h, clamp, binarySearch } from './base.js';
import { formatAxis, formatExact, formatTime, formatValue, plural } from './format.js';
import { binaryName, functionName, taskName } from './state.js';
import { rowStatistics, rowValues, stackDepths, stackFilter } from './sums.js';
import { textColour, themeColours } from './colours.js';
import { ROW, AXIS, createScene, createViewport, createPalette, createFollower, createStrip, addGestures, viewportKey, isForOthers, listenKeys, drawAxis, drawGaps, drawRange, gapLines, eachInterval, intervalAt, openMenu, outline, copyText } from './canvas.js';

/** @typedef {import('./types.js').App} App */
/** @typedef {import('./types.js').View} View */
/** @typedef {import('./types.js').Rows} Rows */
/** @typedef {{kind: 'task' | 'cpu' | 'all', id: number}} ChartLane */

/**
 * The rows of a lane, and when they begin and end.
 *
 * @typedef {{rows: Uint32Array, begins: Float64Array, ends: Float64Array, deepest: number}} LaneRows
 *
 * Frames of one depth, and all that were built: of every `every`th row from `first` on, up to `last`.
 *
 * @typedef {{nr: number, begin: Float64Array, end: Float64Array, stack: Uint32Array}} ChartLevel
 * @typedef {{first: number, last: number, every: number, levels: ChartLevel[]}} Chart
 * @typedef {{depth: number, begin: number, end: number, stack: number}} ChartFrame
 */

const FEWEST = 14; // px of a text
const MOST_ROWS = 20000; // that are visible
const ROWS_AROUND = 1000; // of a match
/** @type {Chart} */
const NO_CHART = { first: 0, last: -1, every: 1, levels: [] };

/** @param {App} app @returns {View} */
export function createChart(app) {
  let { rows, begins, ends, deepest } = emptyLane();
  let chart = NO_CHART;
  /** @type {ChartLane} */
  let lane = { kind: 'all', id: 0 };
  /** @type {ChartFrame | null} */
  let cursor = null;
  /** @type {ChartFrame | null} */
  let hovered = null;
  /** @type {ChartFrame | null} */
  let longest = null;
  let data = /** @type {App['data'] | null} */ (null);

  const view = createViewport(() => scene.redraw());
  const scene = createScene({ label: 'Stacks in order of time. Arrow keys walk, '
    + 'W, A, S and D move the view.', draw,
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
      h('span', { class: 'drawing-muted' }, 'Drag the axis, or with Shift, to select a time')),
        scene.element, focused]
    : h('p', { class: 'drawing-note' },
      'The samples of this recording have no times, so they have no order.'));

  const timeAt = (/** @type {number} */ x) => view.at(x, scene.width);
  addGestures(scene, view, { hover,
    drag: (x, y, event) => y < AXIS || event.shiftKey ? follower.drag(timeAt, x) : null,
    click: (x, y) => pick(frameAt(x, y)),
    double: (x, y) => zoomTo(frameAt(x, y)),
    menu: (x, y, event) => {
      pick(frameAt(x, y));
      if (cursor) menu(event.clientX, event.clientY);
    } });
  listenKeys(scene, key);

  // Frames

  const stackOf = (/** @type {number} */ i) => app.data.rows.stack[rows[i]];
  const functionOf = (/** @type {ChartFrame} */ frame) => app.data.stacks.function[frame.stack];
  const endOf = (/** @type {number} */ i) => groupEnd(begins, ends, i, chart.every);

  /** Builds what is visible, and a little more. */
  function build() {
    const first = binarySearch(ends, view.from);
    const last = binarySearch(begins, view.to);
    const every = 2 ** Math.max(Math.ceil(Math.log2((last - first) / MOST_ROWS)), 0);
    if (first >= chart.first && last <= chart.last && every >= chart.every) return;
    const margin = (view.to - view.from) / 4;
    const from = binarySearch(ends, view.from - margin);
    chart = buildChart(app, { rows, begins, ends, deepest }, from - from % every,
      binarySearch(begins, view.to + margin), every);
    longest = null;
    showNote();
  }

  /** @param {number} i a row, so that it is built */
  function reach(i) {
    const third = (view.to - view.from) / 3;
    if (i < chart.first || i >= chart.last) view.set(begins[i] - third, begins[i] + 2 * third);
    build();
  }

  /**
   * @param {number} depth
   * @param {number} time
   * @param {number} [slack]
   * @returns {ChartFrame | null}
   */
  function frameAtTime(depth, time, slack = 0) {
    const level = chart.levels[depth];
    if (!level) return null;
    const at = intervalAt(level, time);
    return at < level.nr && level.begin[at] <= time + slack ? frameOf(depth, at) : null;
  }

  /** @param {number} depth @param {number} at in its level */
  function frameOf(depth, at) {
    const { begin, end, stack } = chart.levels[depth];
    return wholeFrame({ depth, begin: begin[at], end: end[at], stack: stack[at] });
  }

  /** A frame with what was not built of it. @param {ChartFrame} frame @returns {ChartFrame} */
  function wholeFrame(frame) {
    const { every, first } = chart;
    if (longest && isSame(longest, frame)) return longest;
    const { parent } = app.data.stacks;
    const goesOn = (/** @type {number} */ i, /** @type {number} */ to) => {
      if (to < 0 || to >= rows.length || begins[Math.max(i, to)] > endOf(Math.min(i, to))) return false;
      let stack = stackOf(to);
      while (stack > frame.stack) stack = parent[stack];
      return stack === frame.stack;
    };
    let from = first;
    let to = chart.last - 1 - (chart.last - 1 - first) % every;
    if (frame.begin !== begins[from] && frame.end !== endOf(to)) return frame;
    let { begin, end } = frame;
    if (begin === begins[from]) while (goesOn(from, from - every)) begin = begins[from -= every];
    if (end === endOf(to)) while (goesOn(to, to + every)) end = endOf(to += every);
    return longest = { ...frame, begin, end };
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
    build();
    const scroll = scene.scroll();
    const colours = themeColours();
    const matches = app.matches();
    const { function: chosen } = app.choice;
    const { stacks } = app.data;
    const first = Math.max(Math.floor(scroll / ROW), 0);
    const last = Math.min(chart.levels.length, Math.ceil((scroll + height - AXIS) / ROW));
    const isIn = (/** @type {ChartFrame | null} */ frame, /** @type {number} */ depth, /** @type {ChartLevel} */ level,
      /** @type {number} */ i) => frame !== null && isSame(frame,
      { depth, stack: level.stack[i], begin: level.begin[i], end: level.end[i] });
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
          scene.label(functionName(app.data, fn), Math.max(x0, 0) + 4, y + ROW / 2,
            Math.min(x1, width) - Math.max(x0, 0) - 8, true);
        }
        if (match && wide > 2) outline(context, colours.text, x0, y, wide - 1, 1);
        if (fn === chosen) outline(context, colours.accent, x0, y, Math.max(wide - 1, 1), 2);
        if (isIn(hovered, depth, level, i)) outline(context, colours.muted, x0, y, wide - 1, 1);
        if (isIn(cursor, depth, level, i))
          outline(context, colours.text, x0, y, Math.max(wide - 1, 2), 2);
      });
      strip.draw(y);
    }
    drawGaps(scene, view, app.data.gaps, { ...(lane.kind === 'all' ? {} : { [lane.kind]: lane.id }),
      top: AXIS,
      height: Math.max(deepest * ROW - scroll, height - AXIS) });
    if (!rows.length) {
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

  /** Of what is drawn. @param {ChartFrame} frame */
  function sumsOf({ begin, end }) {
    const { every } = chart;
    const { count } = app.data.rows;
    const value = rowValues(app, app.data.rows);
    const sums = { value: 0, samples: 0 };
    const from = Math.ceil(binarySearch(begins, begin) / every) * every;
    for (let i = from; i < rows.length && endOf(i) <= end; i += every) {
      sums.value += value[rows[i]];
      sums.samples += count[rows[i]];
    }
    return sums;
  }

  /** @param {ChartFrame} frame */
  function describe(frame) {
    const { begin, end } = frame;
    const { axis } = app.data.head;
    const name = functionName(app.data, functionOf(frame));
    const time = `${formatAxis(end - begin, axis)} from ${formatAxis(begin, axis)} on`;
    const what = app.data.rows.length ? 'call' : 'sample';
    return `${name}: ${time}, ${plural(sumsOf(frame).samples, chart.every > 1 ? `drawn ${what}` : what)}`;
  }

  /** @param {ChartFrame | null} frame */
  function zoomTo(frame) {
    if (!frame) return;
    const { begin, end } = frame;
    view.set(begin - (end - begin) * 0.05, end + (end - begin) * 0.05, true);
  }

  /** @param {number} x @param {number} y @param {PointerEvent | null} event */
  function hover(x, y, event) {
    const frame = event && frameAt(x, y);
    if (frame && hovered ? !isSame(frame, hovered) : frame !== hovered) scene.redraw();
    hovered = frame;
    if (!event) return app.tip(0, 0, null);
    const of = lane.kind === 'all' ? {} : { [lane.kind]: lane.id };
    const lines = frame ? tipLines(frame) : gapLines(app, timeAt(x),
      { ...of, slack: (view.to - view.from) / scene.width });
    return app.tip(event.clientX, event.clientY, lines.length ? lines : null);
  }

  /** @param {ChartFrame} frame */
  function tipLines(frame) {
    const { axis, events, quantum } = app.data.head;
    const fn = functionOf(frame);
    const { begin, end } = frame;
    const { value, samples } = sumsOf(frame);
    const traced = !!app.data.rows.length;
    /** @type {(string | [string, string])[]} */
    const lines = [functionName(app.data, fn)];
    if (binaryName(app.data, fn)) lines.push(['Binary', binaryName(app.data, fn)]);
    lines.push(['Duration', formatAxis(end - begin, axis)], ['Begin', formatAxis(begin, axis)],
      [traced ? 'Calls' : 'Samples', formatExact(samples)],
      ['Value', formatValue(value, events[app.choice.event])]);
    if (app.data.stacks.inlined[frame.stack]) lines.push('inlined into its caller');
    if (chart.every > 1)
      lines.push(`One of ${chart.every} ${traced ? 'stretches' : 'samples'} is drawn, and counted here.`);
    if (quantum)
      lines.push(`Samples are summed up over ${formatTime(quantum)}: `
        + 'within that time, the heaviest stack is first.');
    return lines;
  }

  /** @param {number} x @param {number} y */
  function menu(x, y) {
    app.tip(0, 0, null);
    const frame = /** @type {ChartFrame} */ (cursor);
    const { begin, end } = frame;
    openMenu(x, y, [
      { text: 'Zoom', key: 'Enter', run: () => zoomTo(frame) },
      { text: 'Select its time', run: () => app.choose({ range: [Math.floor(begin),
        Math.ceil(end)] }) },
      { text: 'Show this function', run: () =>
        app.choose({ function: functionOf(frame), tab: 'function' }) },
      { text: 'Copy name', run: () => copyText(functionName(app.data, functionOf(frame)), app) }],
        scene.canvas);
  }

  /** @param {ChartFrame | null} frame */
  function walkTo(frame) {
    if (!frame) return;
    pick(frame, true);
    const { begin, end } = frame;
    const goal = view.goal();
    const length = goal.to - goal.from;
    if ((end - begin) / length * scene.width < 2)
      view.set(begin - (end - begin) * 15, end + (end - begin) * 15, true);
    else if (end < goal.from || begin > goal.to)
      view.set(begin - length / 3, begin + length * 2 / 3, true);
    const y = AXIS + frame.depth * ROW - scene.scroll();
    if (y < AXIS) scene.element.scrollTop -= AXIS - y;
    else if (y + ROW > scene.height) scene.element.scrollTop += y + ROW - scene.height;
  }

  /** @param {KeyboardEvent} event */
  function key(event) {
    if (isForOthers(event)) return false;
    const from = cursor ?? frameAtTime(0, (view.from + view.to) / 2, view.to);
    if (event.key.startsWith('Arrow') && from) {
      const { depth } = from;
      if (!cursor) walkTo(from);
      else if (event.key === 'ArrowLeft') walkTo(siblingOf(from, -1));
      else if (event.key === 'ArrowRight') walkTo(siblingOf(from, 1));
      else if (event.key === 'ArrowUp') walkTo(depth ? frameAtTime(depth - 1, timeOf(from)) : null);
      else walkTo(childOf(from));
      return true;
    }
    if (event.key === 'Enter' && cursor) zoomTo(cursor);
    else if (event.key === 'm' && cursor) {
      const box = scene.canvas.getBoundingClientRect();
      menu(box.left + clamp(view.x(cursor.begin, scene.width), 0, scene.width - 50),
        box.top + AXIS);
    } else if (event.key === 'Escape' && app.choice.range) app.choose({ range: null });
    else return viewportKey(event, view);
    return true;
  }

  /** @param {ChartFrame} frame @returns {number} when it begins, or its part that was built */
  function timeOf({ begin, end }) {
    if (begin >= ends[chart.last - 1] || end <= begins[chart.first]) reach(binarySearch(begins, begin));
    return Math.max(begin, begins[chart.first]);
  }

  /** @param {ChartFrame} frame */
  function childOf(frame) {
    const { depth, end } = frame;
    const time = timeOf(frame);
    const child = frameAtTime(depth + 1, time, end - time);
    return child && child.begin < end ? child : null;
  }

  /** @param {ChartFrame} frame @param {1 | -1} direction */
  function siblingOf(frame, direction) {
    const { depth, stack, begin, end } = frame;
    const time = timeOf(frame);
    const level = chart.levels[depth];
    if (!level) return null;
    let at = binarySearch(level.begin.subarray(0, level.nr), time);
    while (at < level.nr && level.stack[at] !== stack) at++;
    at += direction;
    if (at >= 0 && at < level.nr) return frameOf(depth, at);
    // Beyond what was built.
    const { first, last, every } = chart;
    const depths = stackDepths(app);
    let i = direction > 0 ? first + Math.ceil((last - first) / every) * every : first - every;
    while (i >= 0 && i < rows.length && (depths[stackOf(i)] <= depth || (begins[i] >= begin && begins[i] < end)))
      i += direction * every;
    if (i < 0 || i >= rows.length) return null;
    reach(i);
    return frameAtTime(depth, begins[i], view.to - view.from);
  }

  /** @param {1 | -1} direction */
  function find(direction) {
    const matches = app.matches();
    if (!matches || !rows.length) return;
    const { stacks } = app.data;
    // By stack: the depth of the outermost function that matches, plus 1.
    const depths = new Uint32Array(stacks.nr);
    const depthOf = stackDepths(app);
    for (let i = 1; i < stacks.nr; i++)
      depths[i] = depths[stacks.parent[i]] || (matches[stacks.function[i]] ? depthOf[i] : 0);
    const start = cursor ?? { begin: view.to, end: view.from };
    let at = direction > 0 ? binarySearch(begins, start.end) : binarySearch(begins, start.begin) - 1;
    // Rows without a length are in no frame that can be seen.
    while (at >= 0 && at < rows.length && (!depths[stackOf(at)] || begins[at] === ends[at])) at += direction;
    if (at < 0 || at >= rows.length) {
      app.say('There is no further match in this direction.');
      return;
    }
    // Where it is one of those that are drawn.
    if (at % chart.every)
      view.set(begins[Math.max(at - ROWS_AROUND, 0)], ends[Math.min(at + ROWS_AROUND, rows.length - 1)]);
    reach(at);
    walkTo(frameAtTime(depths[stackOf(at)] - 1, begins[at]));
    app.say(focused.textContent ?? '');
  }

  // Updates

  function listLanes() {
    const { tasks } = app.data;
    const { cpuTotals, taskTotals } = rowStatistics(app);
    const busiest = [...taskTotals.keys()].filter((id) => taskTotals[id])
      .sort((a, b) => tasks.idle[a] - tasks.idle[b] || taskTotals[b] - taskTotals[a]).slice(0, 500);
    const cpus = [...cpuTotals.keys()].filter((id) => id && cpuTotals[id]);
    const option = (/** @type {string} */ value_, /** @type {string} */ text) =>
      h('option', { value: value_ }, text);
    lanes.replaceChildren(
      h('optgroup', { label: 'Tasks, the busiest first' },
        busiest.map((id) => option(`task ${id}`, taskName(app.data, id)))),
      h('optgroup', { label: 'CPUs' }, cpus.map((id) => option(`cpu ${id}`, `CPU ${id - 1}`))));
    const { task, cpu } = app.choice;
    if (task !== null) lane = { kind: 'task', id: task };
    else if (cpu !== null) lane = { kind: 'cpu', id: cpu };
    else if (!(lane.kind === 'task' ? taskTotals : cpuTotals)[lane.id] || lane.kind === 'all')
      lane = busiest.length ? { kind: 'task', id: busiest[0] } : { kind: 'all', id: 0 };
    // One that is not in the list.
    if (task !== null && !busiest.includes(task))
      lanes.prepend(option(`task ${task}`, taskName(app.data, task)));
    lanes.value = `${lane.kind} ${lane.id}`;
  }

  function rebuild() {
    ({ rows, begins, ends, deepest } = laneRows(app, lane));
    chart = NO_CHART;
    cursor = hovered = longest = null;
    focused.textContent = '';
    scene.setContent(deepest * ROW + AXIS);
    showNote();
  }

  function showNote() {
    const { quantum } = app.data.head;
    const { length } = rows;
    const all = quantum ? `${plural(length, 'sum')} of samples over ${formatTime(quantum)}, the heaviest first`
      : app.data.rows.length ? plural(length, 'stretch', 'stretches') : plural(length, 'sample');
    note.textContent = all + (chart.every > 1 ? `; one of ${chart.every} is drawn: zoom in to see all` : '');
  }

  /** @param {Set<string>} changed */
  function update(changed) {
    if (!app.data.head.timed) return;
    const fresh = data !== app.data;
    if (fresh || changed.has('theme') || changed.has('colours')) palette.forget();
    // A recording that grows: what is seen stays, unless it was all.
    const follows = changed.has('range') && (!fresh || !data || view.whole());
    const first = !data;
    if (fresh) {
      data = app.data;
      view.limit(0, Math.max(data.head.length, 1), data.head.axis === 'ns' ? 20 : 10);
    }
    if (fresh || ['event', 'task', 'cpu'].some((one) => changed.has(one))) listLanes();
    if (fresh || ['event', 'task', 'cpu', 'hidden', 'focus'].some((one) => changed.has(one)))
      rebuild();
    if (changed.has('sizes')) scene.setContent(deepest * ROW + AXIS);
    if (follows) follower.follow(!first);
    scene.draw();
  }

  return { id: 'chart', label: 'Time order', element, update, key, find };
}

/** Whether two frames are one, of which different parts were built. @param {ChartFrame} a @param {ChartFrame} b */
function isSame(a, b) {
  return a.depth === b.depth && a.stack === b.stack
    && (a.begin === b.begin || (a.begin < b.end && b.begin < a.end));
}

/** @returns {LaneRows} */
function emptyLane() {
  return { rows: new Uint32Array(0), begins: new Float64Array(0), ends: new Float64Array(0), deepest: 0 };
}

/** @param {App} app @param {ChartLane} lane @returns {LaneRows} */
function laneRows(app, { kind, id }) {
  const { rows: all, head } = app.data;
  const { event, cpu, task } = app.choice;
  const counts = stackFilter(app);
  const depths = stackDepths(app);
  const of = kind === 'all' ? null : all[kind];
  const found = new Uint32Array(all.nr);
  let nr = 0;
  let deepest = 0;
  for (let i = 0; i < all.nr; i++) {
    if (all.event[i] !== event || (of && of[i] !== id) || (cpu !== null && all.cpu[i] !== cpu)
      || (task !== null && all.task[i] !== task) || !counts(all.stack[i])) continue;
    found[nr++] = i;
    deepest = Math.max(deepest, depths[all.stack[i]]);
  }
  const rows = found.slice(0, nr);
  const begins = new Float64Array(nr);
  for (let i = 0; i < nr; i++) begins[i] = all.time[rows[i]];
  if (!all.length)
    return { rows, begins, deepest, ends: head.quantum ? placeInQuanta(app, rows, begins)
      : sampleEnds(begins, head.length) };
  const ends = new Float64Array(nr);
  for (let i = 0; i < nr; i++) ends[i] = begins[i] + all.length[rows[i]];
  return { rows, begins, ends, deepest };
}

/**
 * A sample lasts until the next one, but not much longer than usual.
 * @param {Float64Array} begins
 * @param {number} length
 */
function sampleEnds(begins, length) {
  const every = Math.ceil(begins.length / 20000);
  const distances = [];
  for (let i = every; i < begins.length; i += every) distances.push(begins[i] - begins[i - 1]);
  const typical = Float64Array.from(distances).sort()[distances.length >> 1] || length / 100 || 1;
  const ends = new Float64Array(begins.length);
  for (let i = 0; i < begins.length; i++) {
    const next = i + 1 < begins.length ? begins[i + 1] : Infinity;
    ends[i] = next - begins[i] <= 1.5 * typical ? next : begins[i] + typical;
  }
  return ends;
}

/**
 * Puts rows of the same time side by side.
 * @param {App} app
 * @param {Uint32Array} rows
 * @param {Float64Array} begins
 * @returns {Float64Array} their ends
 */
function placeInQuanta(app, rows, begins) {
  const { quantum, events, axis } = app.data.head;
  const value = rowValues(app, app.data.rows);
  const { unit, weighs } = events[app.choice.event];
  const ends = new Float64Array(rows.length);
  for (let from = 0, to; from < rows.length; from = to) {
    const begin = begins[from];
    for (to = from + 1; to < rows.length && begins[to] === begin;) to++;
    const some = rows.subarray(from, to);
    const sum = sortByValue(some, value);
    const scale = quantum / (unit === 'ns' && weighs && axis === 'ns' ? Math.max(sum, quantum)
      : sum || 1);
    let at = begin;
    for (let i = from; i < to; i++) {
      begins[i] = at;
      ends[i] = at += value[rows[i]] * scale;
    }
  }
  return ends;
}

/**
 * The largest value comes first. There may be millions of rows: to sort numbers is much faster than to call a function
 * that compares.
 * @param {Uint32Array} rows
 * @param {import('./types.js').Numbers} value by row
 * @returns {number} the sum of their values
 */
function sortByValue(rows, value) {
  const nr = rows.length;
  const old = rows.slice();
  let [most, sum] = [0, 0];
  for (const row of old) {
    most = Math.max(most, value[row]);
    sum += value[row];
  }
  // A key is what is missing from the largest value, and the number, together less than 2^53.
  const unit = Math.max(most * nr / 2 ** 52, 1);
  const keys = new Float64Array(nr);
  for (let i = 0; i < nr; i++) keys[i] = Math.floor((most - value[old[i]]) / unit) * nr + i;
  keys.sort();
  for (let i = 0; i < nr; i++) rows[i] = old[keys[i] - Math.floor(keys[i] / nr) * nr];
  return sum;
}

/**
 * A row is also drawn for those after it that are not, as long as there is no gap.
 * @param {Float64Array} begins
 * @param {Float64Array} ends
 * @param {number} i
 * @param {number} every
 */
function groupEnd(begins, ends, i, every) {
  const last = Math.min(i + every, begins.length) - 1;
  while (i < last && begins[i + 1] <= ends[i]) i++;
  return ends[i];
}

/**
 * @param {App} app
 * @param {LaneRows} lane
 * @param {number} first
 * @param {number} last
 * @param {number} every
 * @returns {Chart}
 */
function buildChart(app, { rows, begins, ends }, first, last, every) {
  const { stacks, rows: all } = app.data;
  const depths = stackDepths(app);
  /** @type {ChartLevel[]} */
  const levels = [];
  /** @type {number[]} stacks of the last sample, by depth */
  const path = [];
  let open = 0;
  let end = -Infinity; // of the last sample
  const close = (/** @type {number} */ from) => {
    for (let depth = from; depth < open; depth++) levels[depth].end[levels[depth].nr - 1] = end;
  };
  for (let i = first; i < last; i += every) {
    const stack = all.stack[rows[i]];
    const depth = depths[stack];
    const goesOn = begins[i] <= end;
    let common = depth;
    // Up to the frame that goes on.
    for (let at = stack; common; at = stacks.parent[at]) {
      if (goesOn && common <= open && path[common - 1] === at) break;
      path[--common] = at;
    }
    close(common);
    for (let j = common; j < depth; j++) addFrame(levels, j, begins[i], path[j]);
    open = depth;
    end = groupEnd(begins, ends, i, every);
  }
  close(0);
  return { first, last, every, levels };
}

/**
 * @param {ChartLevel[]} levels
 * @param {number} depth
 * @param {number} begin
 * @param {number} stack
 */
function addFrame(levels, depth, begin, stack) {
  let level = levels[depth];
  if (!level || level.nr === level.stack.length) level = levels[depth] = growLevel(level);
  level.begin[level.nr] = begin;
  level.stack[level.nr++] = stack;
}

/** @param {ChartLevel | undefined} level @returns {ChartLevel} with more room */
function growLevel(level) {
  const room = level ? 2 * level.nr : 64;
  const grown = { nr: level?.nr ?? 0, begin: new Float64Array(room), end: new Float64Array(room),
    stack: new Uint32Array(room) };
  if (level) {
    grown.begin.set(level.begin);
    grown.end.set(level.end);
    grown.stack.set(level.stack);
  }
  return grown;
}
