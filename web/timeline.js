// SPDX-License-Identifier: GPL-2.0-or-later
//
// The timeline: activity by cpu and by task. It selects a range of time.
import { h, button, clamp, binarySearch, setStyle } from './base.js';
import { formatAxis, formatPercent, formatValue, plural } from './format.js';
import { functionName, taskName } from './state.js';
import { idleCategory, rowStatistics, rowValues } from './sums.js';
import { categoryColour, textColour, themeColours } from './colours.js';
import { AXIS, NAMES, px, createScene, createViewport, addGestures, viewportKey, isForOthers, listenKeys, drawAxis, drawGaps, drawRange, gapLines, hatch, rangeDrag } from './canvas.js';

/** @typedef {import('./types.js').App} App */
/** @typedef {import('./types.js').Dataset} Dataset */
/** @typedef {import('./types.js').View} View */
/** @typedef {import('./canvas.js').Scene} Scene */
/** @typedef {import('./canvas.js').Viewport} Viewport */

/**
 * @typedef {{kind: 'cpu' | 'task' | 'all', id: number, label: string, top: number, height: number}}
 * Lane
 * @typedef {{kind: string, label: string, open?: boolean, top: number, run: () => void}} Heading
 * @typedef {{lanes: Lane[], headings: Heading[], height: number}} Lanes
 */

/**
 * What rows add up to, by lane, category (the last one: idle), and bin.
 *
 * @typedef {{bins: number, categories: number, values: Float32Array, chosen: Float32Array | null,
 *   full: Float64Array}} Activity
 */

// px, of a small screen
const OVERVIEW = 16;
const LANE_HEIGHT = { cpu: 24, task: 20, all: 40 };
const HEADING = 18;
/** @type {Lane} */
const OVERVIEW_LANE = { kind: 'all', id: 0, label: '', top: 1, height: 0 };
const FEW_TASKS = 6;
const MORE_TASKS = 25;

/** @param {App} app @returns {View} */
export function createTimeline(app) {
  const { head } = app.data;
  const element = h('section', { class: 'timeline', 'aria-label': 'Timeline' });
  if (!head.timed) {
    element.append(h('p', { class: 'drawing-note' },
      'The samples of this recording have no times, so there is no timeline.'));
    return { id: 'timeline', label: 'Timeline', element, update: () => {} };
  }
  const folded = new Set();
  let shown = FEW_TASKS;
  let lanes = /** @type {Lanes} */ ({ lanes: [], headings: [], height: 0 });
  let data = /** @type {Dataset | null} */ (null);
  let statistics = /** @type {import('./sums.js').RowStatistics | null} */ (null);
  let laneCache = activityCache();
  let overviewCache = activityCache();

  const view = createViewport(() => { top.redraw(); body.redraw(); placeHandles(); });
  const top = createScene({ label: 'Overview of the whole recording, and time axis', draw: drawTop,
    className: 'timeline-top' });
  const body = createScene({ label: 'Activity over time', draw: drawBody,
    className: 'timeline-body' });
  const names = h('div', { class: 'timeline-names' });
  body.space.append(names);
  const legend = h('div', { class: 'timeline-legend' });
  const chosen = h('span', { class: 'timeline-chosen', 'aria-live': 'polite' });
  const handles = [handle(0, 'Begin of the selected time'), handle(1, 'End of the selected time')];
  const clear = button('Clear', 'Select all of the time (Esc)', () => app.choose({ range: null }));
  const zoomRange = button('Zoom', 'Zoom the timeline to the selected time (Enter)', zoomToRange);
  element.append(h('div', { class: 'drawing-bar' }, h('strong', null, 'Timeline'), legend,
    h('span', { class: 'drawing-fill' }), chosen, zoomRange, clear,
    h('div', { class: 'segments' }, button('−', 'Zoom out (-)', () => view.zoom(2, undefined, true)),
      button('+', 'Zoom in (+)', () => view.zoom(0.5, undefined, true)),
      button('All', 'Show all of the time (0)', () => view.set(view.min, view.max, true)))),
  h('div', { class: 'timeline-area' }, top.element, body.element, handles));

  // The overview and the handles have the width of the lanes, which may have a scroll bar.
  new ResizeObserver(() => { top.redraw(); placeHandles(); }).observe(body.element);

  const width = () => body.width - NAMES;
  const timeAt = (/** @type {number} */ x) => view.at(x - NAMES, width());

  addGestures(body, view, { left: () => NAMES,
    drag: (x) => x < NAMES ? null : rangeDrag(app, timeAt,
      clamp(timeAt(x), 0, app.data.head.length)),
    double: () => app.choose({ range: null }), hover });
  addGestures(top, view, { left: () => NAMES,
    drag: (_x, y) => y > px(OVERVIEW) ? null : { move: lookAt, end: lookAt },
    click: (x, y) => { if (y <= px(OVERVIEW) && x > NAMES) lookAt(x); },
    double: () => view.set(view.min, view.max, true) });
  listenKeys(body, key);
  listenKeys(top, key);

  /** Moves the middle of what is visible. @param {number} x in the overview */
  function lookAt(x) {
    const middle = (x - NAMES) / width() * view.max;
    const half = (view.to - view.from) / 2;
    view.set(middle - half, middle + half);
  }

  function zoomToRange() {
    const { range } = app.choice;
    if (!range) return;
    const margin = (range[1] - range[0]) * 0.1;
    view.set(range[0] - margin, range[1] + margin, true);
  }

  /** @param {0 | 1} edge @param {string} label */
  function handle(edge, label) {
    /** @type {ReturnType<typeof rangeDrag> | null} */
    let drag = null;
    const x = (/** @type {PointerEvent} */ event) =>
      event.clientX - body.canvas.getBoundingClientRect().left;
    return h('div', { class: 'timeline-handle', role: 'slider', tabindex: 0, 'aria-label': label,
      onpointerdown: (/** @type {PointerEvent} */ event) => {
        if (!app.choice.range) return;
        handles[edge].setPointerCapture(event.pointerId);
        handles[edge].focus({ preventScroll: true });
        drag = rangeDrag(app, timeAt, app.choice.range[1 - edge]);
        event.preventDefault();
      },
      onpointermove: (/** @type {PointerEvent} */ event) => drag?.move(x(event), 0),
      onpointerup: (/** @type {PointerEvent} */ event) => { drag?.end(x(event), 0); drag = null; },
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        const by = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -10,
          PageUp: 10 }[event.key];
        if (!by) return;
        moveRange(by, edge);
        event.preventDefault();
        event.stopPropagation();
      } });
  }

  /** @param {number} by steps @param {0 | 1 | null} edge null: both */
  function moveRange(by, edge) {
    const { range } = app.choice;
    if (!range) return;
    const { length, quantum } = app.data.head;
    const unit = quantum || 1;
    const step = Math.max(Math.round((view.to - view.from) / 200 / unit), 1) * unit * by;
    /** @type {[number, number]} */
    const moved = [...range];
    if (edge === null) {
      const inside = clamp(step, -range[0], length - range[1]);
      moved[0] += inside;
      moved[1] += inside;
    } else if (edge)
      moved[1] = clamp(range[1] + step, range[0] + 1, Math.max(length, range[0] + 1));
    else moved[0] = clamp(range[0] + step, 0, range[1] - 1);
    app.choose({ range: moved }, true);
  }

  /** @param {KeyboardEvent} event */
  function key(event) {
    if (isForOthers(event)) return false;
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by && app.choice.range) moveRange(by, event.shiftKey ? 1 : null);
    else if (by) view.pan(by * 0.1, true);
    else if (event.key === 'Escape' && app.choice.range) app.choose({ range: null });
    else if (event.key === 'Enter' && app.choice.range) zoomToRange();
    else return viewportKey(event, view);
    return true;
  }

  // Lanes

  function makeLanes() {
    const { tasks } = app.data;
    const { cpuTotals, taskTotals } = /** @type {NonNullable<typeof statistics>} */ (statistics);
    lanes = { lanes: [], headings: [], height: 0 };
    const cpus = [...cpuTotals.keys()].filter((cpu) => cpu && cpuTotals[cpu]);
    const busy = [...taskTotals.keys()].filter((task) => task && taskTotals[task])
      .sort((a, b) => tasks.idle[a] - tasks.idle[b] || taskTotals[b] - taskTotals[a]);
    if (!cpus.length && !busy.length) add('all', 0, 'All');
    if (cpus.length && section('cpu', `${cpus.length} CPUs`, cpus.length > 1))
      for (const cpu of cpus) add('cpu', cpu, `CPU ${cpu - 1}`);
    if (busy.length && section('task', plural(busy.length, 'task'), busy.length > 1)) {
      // The one that is selected can always be seen.
      const few = busy.slice(0, shown);
      const { task } = app.choice;
      if (task && !few.includes(task) && busy.includes(task)) few.push(task);
      for (const one of few) add('task', one, taskName(app.data, one));
      const rest = busy.length - few.length;
      if (rest > 0) heading('more', `${plural(rest, 'more task')}`, () => { shown += MORE_TASKS; });
      else if (shown > FEW_TASKS && busy.length > FEW_TASKS)
        heading('more', 'Fewer tasks', () => { shown = FEW_TASKS; });
    }
    const above = px(OVERVIEW) + AXIS;
    setStyle(top.element, { height: `${above}px` });
    handles.forEach((one) => setStyle(one, { top: `${above}px` }));
    body.setContent(lanes.height);
    body.element.style.height = `${lanes.height}px`;
    showNames();
  }

  /** @param {'cpu' | 'task' | 'all'} kind @param {number} id @param {string} label */
  function add(kind, id, label) {
    lanes.lanes.push({ kind, id, label, top: lanes.height, height: px(LANE_HEIGHT[kind]) });
    lanes.height += px(LANE_HEIGHT[kind]);
  }

  /** @param {string} kind @param {string} label @param {() => void} run @param {boolean} [open] */
  function heading(kind, label, run, open) {
    lanes.headings.push({ kind, label, open, top: lanes.height,
      run: () => { run(); makeLanes(); body.redraw(); } });
    lanes.height += px(HEADING);
  }

  /**
   * @param {string} kind
   * @param {string} label
   * @param {boolean} needed
   * @returns {boolean} whether it is open
   */
  function section(kind, label, needed) {
    const open = !folded.has(kind);
    if (needed) heading(kind, label, () => { if (!folded.delete(kind)) folded.add(kind); }, open);
    return open;
  }

  function showNames() {
    const style = (/** @type {number} */ y, /** @type {number} */ height) =>
      ({ top: `${y}px`, height: `${height}px` });
    names.replaceChildren(...lanes.headings.map(({ label, open, top: y, run }) =>
      h('button', { type: 'button', class: 'timeline-heading', style: style(y, px(HEADING)),
        onclick: run,
        'aria-expanded': open === undefined ? null : String(open) },
      open === undefined ? label : `${open ? '▾' : '▸'} ${label}`)),
    ...lanes.lanes.map(({ kind, id, label, top: y, height }) =>
      kind === 'all' ? h('span', { style: style(y, height) })
      : h('button', { type: 'button', class: 'timeline-name',
        title: `${label}: select only its samples`,
        style: style(y, height), 'aria-pressed': String(app.choice[kind] === id),
        onclick: () => app.choose({ [kind]: app.choice[kind] === id ? null : id }) }, label)));
  }

  // Drawing

  /** @param {Lane[]} of */
  function activityOf(of) {
    const bins = Math.max(Math.round(width()), 1);
    const laneOf = { cpu: new Int32Array(statistics?.cpuTotals.length ?? 0).fill(-1),
      task: new Int32Array(app.data.tasks.nr).fill(-1), all: -1 };
    of.forEach(({ kind, id }, i) => {
      if (kind === 'all') laneOf.all = i;
      else laneOf[kind][id] = i;
    });
    return { bins, laneOf };
  }

  /** @param {Scene} scene */
  function drawTop(scene) {
    if (!data || !statistics) return;
    const { context } = scene;
    const overview = px(OVERVIEW);
    const colours = themeColours();
    const { bins, laneOf } = activityOf([OVERVIEW_LANE]);
    const cpus = statistics.cpuTotals.reduce((nr, total, cpu) => nr + (cpu && total ? 1 : 0), 0);
    const activity = overviewCache(app, '', { from: 0, to: view.max, bins, laneOf,
      lanes: 1, statistics }, isWhole() ? laneOfAll(currentActivity()) : null);
    context.translate(NAMES, 0);
    drawLane(scene, app, activity, 0, { ...OVERVIEW_LANE, height: overview - 1 },
      isTime(app) && cpus ? cpus * view.max / bins : activity.full[0]);
    context.translate(-NAMES, 0);
    const [a, b] = [view.from, view.to].map((time) => NAMES + time / view.max * width());
    context.globalAlpha = 0.6;
    context.fillStyle = colours.background;
    context.fillRect(NAMES, 0, a - NAMES, overview);
    context.fillRect(b, 0, scene.width - b, overview);
    context.globalAlpha = 1;
    context.strokeStyle = colours.muted;
    context.strokeRect(Math.round(a) + 0.5, 0.5, Math.max(Math.round(b - a) - 1, 2), overview - 1);
    context.fillStyle = colours.muted;
    scene.label('Whole recording', 8, overview / 2 + 1, NAMES - 16);
    context.translate(0, overview);
    drawAxis(Object.assign({}, scene, { width: body.width }), view, app.data.head.axis,
      { left: NAMES, grid: false });
    context.translate(0, -overview);
  }

  /** @param {Scene} scene */
  function drawBody(scene) {
    if (!data || width() < 1) return;
    const activity = currentActivity();
    const { context } = scene;
    const scroll = scene.scroll();
    const { cpu, task } = app.choice;
    lanes.lanes.forEach((lane, i) => {
      const y = lane.top - scroll;
      if (y > scene.height || y + lane.height < 0) return;
      const chosenOne = lane.kind === 'cpu' ? cpu : lane.kind === 'task' ? task : null;
      context.save();
      context.beginPath();
      context.rect(NAMES, y, width(), lane.height);
      context.clip();
      context.translate(NAMES, 0);
      context.globalAlpha = chosenOne !== null && chosenOne !== lane.id ? 0.35 : 1;
      drawLane(scene, app, activity, i, { ...lane, top: y + 2, height: lane.height - 3 },
        fullOf(activity, lane));
      context.restore();
      drawGaps(scene, view, app.data.gaps, { [lane.kind]: lane.id, left: NAMES, top: y + 2,
        height: lane.height - 3 });
      context.fillStyle = themeColours().line;
      context.fillRect(0, y + lane.height - 1, scene.width, 1);
    });
    drawRange(scene, view, app, NAMES);
  }

  const isWhole = () => view.from === view.min && view.to === view.max;

  /** Lanes to sum up: also that of the overview while it shows the same time, as one pass is cheaper than two. */
  function summedLanes() {
    return isWhole() && lanes.lanes.every(({ kind }) => kind !== 'all') ? [...lanes.lanes, OVERVIEW_LANE] : lanes.lanes;
  }

  function currentActivity() {
    const of = summedLanes();
    const { bins, laneOf } = activityOf(of);
    return laneCache(app, of.map(({ kind, id }) => kind[0] + id).join(), { from: view.from, to: view.to, bins, laneOf,
      lanes: of.length, statistics: /** @type {NonNullable<typeof statistics>} */ (statistics) });
  }

  /** @param {Activity} activity @returns {Activity} */
  function laneOfAll({ bins, categories, values, chosen: own, full }) {
    const i = summedLanes().findIndex(({ kind }) => kind === 'all');
    return { bins, categories, values: values.subarray(i * categories * bins, (i + 1) * categories * bins),
      chosen: own && own.subarray(i * bins, (i + 1) * bins), full: full.subarray(i, i + 1) };
  }

  /** What the height of a lane stands for. @param {Activity} activity @param {Lane} lane */
  function fullOf(activity, lane) {
    if (isTime(app) && lane.kind !== 'all') return (view.to - view.from) / activity.bins;
    // Lanes of one kind have one scale, so that they can be compared.
    return Math.max(...lanes.lanes.map(({ kind }, i) => kind === lane.kind ? activity.full[i] : 0));
  }

  // Selection

  function placeHandles() {
    const { range } = app.choice;
    const { axis, length } = app.data.head;
    handles.forEach((one, edge) => {
      const x = range ? view.x(range[edge], width()) : -1;
      one.hidden = !range || x < -1 || x > width() + 1;
      if (!range) return;
      one.style.left = `${NAMES + x}px`;
      one.setAttribute('aria-valuemin', '0');
      one.setAttribute('aria-valuemax', String(length));
      one.setAttribute('aria-valuenow', String(range[edge]));
      one.setAttribute('aria-valuetext', formatAxis(range[edge], axis));
    });
    clear.hidden = zoomRange.hidden = !range;
    chosen.textContent = range
      ? `Selected: ${formatAxis(range[1] - range[0], axis)}, from ${formatAxis(range[0], axis)
    } to ${formatAxis(range[1], axis)}` : '';
  }

  function showLegend() {
    const { categories } = app.data.head;
    const items = [...statistics?.categories ?? []].map((i) =>
      h('span', null, swatch(i, app), categories[i] ?? 'idle'));
    if (app.data.gaps.nr) items.push(h('span', null, swatch(-1, app), 'data is missing'));
    if (app.choice.function !== null)
      items.push(h('span', null, swatch(-2, app), functionName(app.data, app.choice.function)));
    legend.replaceChildren(...items);
    const { axis, length } = app.data.head;
    const some = lanes.lanes.map(({ label }) => label).slice(0, 12).join(', ');
    body.canvas.setAttribute('aria-label', `Activity over ${formatAxis(length, axis)}, of ${some}. `
      + 'Arrow keys move the selected time, with Shift they move its end; + and - zoom.');
  }

  /** @param {number} x @param {number} y @param {PointerEvent | null} event */
  function hover(x, y, event) {
    const at = y + body.scroll();
    const i = lanes.lanes.findIndex(({ top: from, height }) => at >= from && at < from + height);
    if (!event || x < NAMES || i < 0) return app.tip(0, 0, null);
    const lane = lanes.lanes[i];
    const time = timeAt(x);
    /** @type {(string | [string, string])[]} */
    const lines = [lane.label, ['Time', formatAxis(time, app.data.head.axis)]];
    const activity = currentActivity();
    const bin = clamp(Math.floor(x - NAMES), 0, activity.bins - 1);
    const length = (view.to - view.from) / activity.bins;
    const { categories, events } = app.data.head;
    const text = (/** @type {number} */ value) => isTime(app) ? formatPercent(value, length)
      : formatValue(value, events[app.choice.event]);
    for (let category = activity.categories - 1; category >= 0; category--) {
      const value = activity.values[(i * activity.categories + category) * activity.bins + bin];
      if (value) lines.push([categories[category] ?? 'idle', text(value)]);
    }
    if (app.choice.function !== null && activity.chosen)
      lines.push([functionName(app.data, app.choice.function),
        text(activity.chosen[i * activity.bins + bin])]);
    lines.push(...gapLines(app, time, { [lane.kind]: lane.id, slack: length }));
    return app.tip(event.clientX, event.clientY, lines);
  }

  /** @param {Set<string>} changed */
  function update(changed) {
    const fresh = data !== app.data;
    if (fresh) {
      // A recording that grows: what is seen stays, unless it was all.
      const whole = !data || view.whole();
      data = app.data;
      laneCache = activityCache();
      overviewCache = activityCache();
      view.limit(0, Math.max(data.head.length, 1), data.head.axis === 'ns' ? 20 : 10);
      if (whole) view.set(view.min, view.max);
    }
    if (fresh || changed.has('event')) statistics = rowStatistics(app);
    if (fresh || ['event', 'cpu', 'task', 'sizes'].some((one) => changed.has(one))) makeLanes();
    if (fresh || ['event', 'function', 'theme'].some((one) => changed.has(one))) showLegend();
    body.draw();
    top.draw();
    placeHandles();
  }

  return { id: 'timeline', label: 'Timeline', element, update, key };
}

/**
 * @param {App} app
 * @returns {boolean} whether values of the event are time, of which there is only so much
 */
function isTime(app) {
  const { axis, events } = app.data.head;
  return axis === 'ns' && events[app.choice.event]?.unit === 'ns'
    && events[app.choice.event].weighs;
}

/**
 * What is to be summed up: in `bins` from `from` to `to`, in the lanes that laneOf says; -1: in
 * none.
 *
 * @typedef {{from: number, to: number, bins: number, lanes: number,
 *   laneOf: {cpu: Int32Array, task: Int32Array, all: number}, statistics:
 *   import('./sums.js').RowStatistics}} Wanted
 */

/** Keeps the last sums: of all rows, and of those with the chosen function. `known`: they need not be summed up. */
function activityCache() {
  let allKey = '';
  let chosenKey = '';
  let last = /** @type {Activity | null} */ (null);
  return (/** @type {App} */ app, /** @type {string} */ lanes, /** @type {Wanted} */ wanted,
    /** @type {Activity | null} */ known = null) => {
    const { event, function: fn } = app.choice;
    const key = `${wanted.from} ${wanted.to} ${wanted.bins} ${event} ${lanes}`;
    if (!last || key !== allKey) {
      const categories = app.data.head.categories.length + 1;
      const values = known?.values ?? sumActivity(app, wanted, null);
      last = { bins: wanted.bins, categories, values, chosen: null,
        full: fullestBins(values, wanted.lanes, categories, wanted.bins, idleCategory(app)) };
      allKey = key;
      chosenKey = '';
    }
    if (chosenKey !== `${key} ${fn}`) {
      last.chosen = fn === null ? null : known?.chosen ?? sumActivity(app, wanted, stacksWith(app, fn));
      chosenKey = `${key} ${fn}`;
    }
    return last;
  };
}

/**
 * @param {App} app
 * @param {Wanted} wanted
 * @param {Uint8Array | null} contains by stack: whether its rows count, not by category then; null:
 * all of them do
 * @returns {Float32Array} by lane, category and bin
 */
function sumActivity(app, { from, to, bins, lanes, laneOf, statistics }, contains) {
  const { rows, tasks, stacks, head } = app.data;
  const { event } = app.choice;
  const categories = contains ? 1 : head.categories.length + 1;
  const values = new Float32Array(lanes * categories * bins);
  const { time, length, cpu, task, stack, event: events } = rows;
  const { cpu: cpuLanes, task: taskLanes } = laneOf;
  const { idle } = tasks;
  const idleIndex = idleCategory(app);
  const categoryOf = stacks.category;
  const value = rowValues(app, rows);
  const scale = bins / (to - from);
  const inTime = isTime(app);
  const { quantum } = head;
  const width = quantum || statistics.distance || 1;
  const reach = length || inTime ? statistics.longest : width;
  const last = rows.nr && binarySearch(time, to + reach);
  for (let i = binarySearch(time, from - Math.max(reach, width)); i < last; i++) {
    if (events[i] !== event || (contains && !contains[stack[i]])) continue;
    // A sample is about the time before it; what has a length, or was summed up, about the time after. So is the only
    // one, as there is no time before it.
    const lasts = length ? length[i] : inTime && !quantum ? value[i] : width;
    const begin = (time[i] - (length || quantum || !head.length ? 0 : lasts) - from) * scale;
    const end = begin + lasts * scale;
    if (end <= 0 || begin >= bins) continue;
    const category = contains ? 0 : idle[task[i]] ? idleIndex : categoryOf[stack[i]];
    // Mostly, all of it is in one bin, or in two.
    const first = Math.floor(begin);
    const inTwo = begin >= 0 && end <= first + 2 && first + 1 < bins;
    const x = value[i];
    const inFirst = end <= first + 1 ? x : x * (first + 1 - begin) / (end - begin);
    let lane = cpuLanes[cpu[i]];
    for (let by = 0; by < 3; by++) {
      if (lane >= 0) {
        const at = (lane * categories + category) * bins;
        if (inTwo) {
          values[at + first] += inFirst;
          values[at + first + 1] += x - inFirst;
        } else spreadValue(values, at, bins, begin, end, x);
      }
      lane = by ? laneOf.all : taskLanes[task[i]];
    }
  }
  return values;
}

/**
 * @param {Float32Array} to
 * @param {number} offset
 * @param {number} bins
 * @param {number} begin
 * @param {number} end
 * @param {number} value
 */
function spreadValue(to, offset, bins, begin, end, value) {
  const first = Math.floor(begin);
  if (end <= first + 1) {
    if (first >= 0 && first < bins) to[offset + first] += value;
    return;
  }
  const density = value / (end - begin);
  const stop = Math.min(Math.ceil(end), bins);
  for (let bin = Math.max(first, 0); bin < stop; bin++)
    to[offset + bin] += density * (Math.min(end, bin + 1) - Math.max(begin, bin));
}

/**
 * The largest sum of a bin of each lane; idle tasks do not count.
 * @param {Float32Array} values
 * @param {number} lanes
 * @param {number} categories
 * @param {number} bins
 * @param {number} idle
 */
function fullestBins(values, lanes, categories, bins, idle) {
  const full = new Float64Array(lanes);
  const sums = new Float64Array(bins);
  for (let lane = 0; lane < lanes; lane++) {
    sums.fill(0);
    for (let category = 0; category < categories; category++) {
      const at = (lane * categories + category) * bins;
      if (category === idle) continue;
      for (let bin = 0; bin < bins; bin++) sums[bin] += values[at + bin];
    }
    for (let bin = 0; bin < bins; bin++) full[lane] = Math.max(full[lane], sums[bin]);
  }
  return full;
}

/**
 * @param {App} app
 * @param {number} fn
 * @returns {Uint8Array} by stack: whether the function is in it
 */
function stacksWith(app, fn) {
  const { nr, parent, function: functions } = app.data.stacks;
  const found = new Uint8Array(nr);
  for (let i = 1; i < nr; i++) found[i] = functions[i] === fn || found[parent[i]] ? 1 : 0;
  return found;
}

/**
 * @param {Scene} scene
 * @param {App} app
 * @param {Activity} activity
 * @param {number} i of the lane
 * @param {Lane} lane
 * @param {number} full the value that fills it
 */
function drawLane(scene, app, activity, i, lane, full) {
  const { context } = scene;
  const { bins, categories, values } = activity;
  const sums = new Float32Array(bins);
  const tops = [];
  const idle = idleCategory(app);
  // Idle is the last one, above what is work.
  const order = [...Array(categories).keys()].sort((a, b) =>
    Number(a === idle) - Number(b === idle));
  for (const category of order) {
    const from = (i * categories + category) * bins;
    let any = false;
    for (let bin = 0; bin < bins; bin++) {
      sums[bin] += values[from + bin];
      any ||= values[from + bin] > 0;
    }
    if (any) tops.push({ category, top: sums.slice() });
  }
  const scale = full > 0 ? lane.height / full : 0;
  // From the highest area to the lowest one, each down to the ground: so there are no seams.
  for (const { category, top } of tops.reverse()) {
    areaPath(context, top, lane, scale);
    context.fillStyle = category === idle ? themeColours().line : categoryColour(category, app);
    context.fill();
    context.fillStyle = hatch(context, patternColour(app, category), category + 1);
    context.fill();
  }
  if (!activity.chosen) return;
  areaPath(context, activity.chosen.subarray(i * bins, (i + 1) * bins), lane, scale);
  context.globalAlpha *= 0.8;
  context.fillStyle = themeColours().accent;
  context.fill();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Float32Array} values
 * @param {Lane} lane
 * @param {number} scale
 */
function areaPath(context, values, lane, scale) {
  const ground = lane.top + lane.height;
  let last = 0;
  context.beginPath();
  context.moveTo(0, ground);
  for (let bin = 0; bin < values.length; bin++) {
    const height = Math.min(values[bin] * scale, lane.height);
    if (height === last) continue;
    context.lineTo(bin, ground - last);
    context.lineTo(bin, ground - height);
    last = height;
  }
  context.lineTo(values.length, ground - last);
  context.lineTo(values.length, ground);
  context.closePath();
}

/** @param {App} app @param {number} category */
function patternColour(app, category) {
  const dark = categoryColour(category, app);
  return (textColour(dark) || '#000000') + (category ? '1c' : '00');
}

/**
 * A sample of a colour and its pattern.
 * @param {number} category -1: gaps; -2: the function
 * @param {App} app
 */
function swatch(category, app) {
  const ratio = devicePixelRatio || 1;
  const canvas = h('canvas', { width: 14 * ratio, height: 14 * ratio, class: 'swatch',
    'aria-hidden': 'true' });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  const colours = themeColours();
  context.scale(ratio, ratio);
  context.fillStyle = category === -2 ? colours.accent : category === -1 ? colours.background
    : category === idleCategory(app) ? colours.line : categoryColour(category, app);
  context.fillRect(0, 0, 14, 14);
  if (category === -2) return canvas;
  context.fillStyle = category < 0 ? hatch(context, colours.gap || colours.muted)
    : hatch(context, patternColour(app, category), category + 1);
  context.fillRect(0, 0, 14, 14);
  return canvas;
}
