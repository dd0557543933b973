// SPDX-License-Identifier: GPL-2.0-or-later
//
// Calls of a trace in order of time.
import { h, button, clamp, setStyle } from './base.js';
import { formatAxis, formatBytes, formatExact, formatPercent, plural } from './format.js';
import { binaryName, functionName, taskName } from './state.js';
import { binaryColour, textColour, themeColours } from './colours.js';
import { ROW, AXIS, px, createScene, createViewport, createPalette, createFollower, createStrip, addGestures, viewportKey, isForOthers, listenKeys, drawAxis, drawGaps, drawRange, gapLines, eachInterval, intervalAt, hatch, openMenu, outline, copyText } from './canvas.js';

/** @typedef {import('./types.js').App} App */
/** @typedef {import('./types.js').Slices} Slices */
/** @typedef {import('./types.js').View} View */

/**
 * Calls of a track and of a depth, in order of time; `of` has their numbers.
 *
 * @typedef {{nr: number, of: Uint32Array, begin: Float64Array, end: Float64Array}} SliceLevel
 *
 * How calls are nested. Parents are one more than their number; 0: none. `children` is how long
 * those in a call are.
 *
 * @typedef {{depth: Uint32Array, parent: Uint32Array, children: Float64Array,
 *   tracks: SliceLevel[][]}} Nesting
 * @typedef {{track: number, top: number, open: boolean, depth: number}} TrackPlace
 * @typedef {{from: number, to: number}} Measure
 */

const SNAP = 8; // px
/** @type {SliceLevel} */
const NO_LEVEL = { nr: 0, of: new Uint32Array(0), begin: new Float64Array(0),
  end: new Float64Array(0) };

/**
 * Letters of kinds, so that colours are not needed to tell them apart.
 * @type {Record<string, string>}
 */
const KIND_MARKS = { trap: '!', interrupt: 'I', syscall: 'S', inline: '⤷', jump: '→',
  'tail call': '→', sample: '~',
  'interrupts off': '⊘', note: '¶' };

/** @returns {number} the height of a track's name */
function nameHeight() {
  return px(22);
}

/** @param {App} app @returns {View} */
export function createSlices(app) {
  /** @type {Slices | null} */
  let slices = null;
  let nesting = /** @type {Nesting} */ (/** @type {unknown} */ (null));
  /** @type {TrackPlace[]} */
  let places = [];
  const folded = new Set();
  let selected = -1;
  let hovered = -1;
  let measuring = false;
  /** @type {Measure | null} */
  let measure = null;
  let snapped = NaN; // the time under the pointer, while it measures

  const view = createViewport(() => scene.redraw());
  const scene = createScene({ label: 'Calls over time. '
    + 'W, A, S and D move the view, arrow keys walk, '
    + '[ and ] go to other calls of the function, m measures.', draw, className: 'slices' });
  const follower = createFollower(app, view);
  const strip = createStrip(scene);
  const palette = createPalette(app);
  const measureButton = button('Measure', 'Drag to measure a time (m)',
    () => setMeasuring(!measuring));
  const found = h('span', { class: 'drawing-found', 'aria-live': 'polite' });
  const note = h('span', { class: 'drawing-muted' });
  const legend = h('span', { class: 'drawing-muted' });
  const details = h('aside', { class: 'slice-details', 'aria-label': 'The selected call',
    'aria-live': 'polite' });
  const element = h('div', { class: 'drawing-view' },
    h('div', { class: 'drawing-bar' }, measureButton,
    button('Fold all', 'Hide or show the calls of all tracks', foldAll), note, legend,
    h('span', { class: 'drawing-fill' }), found), scene.element, details);

  const timeAt = (/** @type {number} */ x) => view.at(x, scene.width);
  const pixel = () => (view.to - view.from) / scene.width;
  addGestures(scene, view, { hover, click, drag: startDrag, double: (x, y) => zoomTo(callAt(x, y)),
    menu: (x, y, event) => {
      select(callAt(x, y));
      if (selected >= 0) menu(event.clientX, event.clientY);
    } });
  listenKeys(scene, key);

  // Calls

  const beginOf = (/** @type {number} */ i) => slices ? slices.begin[i] : 0;
  const endOf = (/** @type {number} */ i) => slices ? slices.begin[i] + slices.length[i] : 0;
  const kindOf = (/** @type {number} */ i) => slices?.kinds[slices.kind[i]] ?? '';
  /** @param {number} i @returns {number} -1: none */
  const functionOf = (i) => slices && i >= 0 ? slices.function[i] - 1 : -1;
  const placeOf = (/** @type {number} */ i) =>
    places.find(({ track }) => slices && track === slices.track[i]);
  const axisText = (/** @type {number} */ length) => formatAxis(length, app.data.head.axis);

  /** @param {number} i */
  function nameOf(i) {
    if (!slices) return '';
    if (slices.function[i]) return functionName(app.data, slices.function[i] - 1);
    return slices.task[i] ? taskName(app.data, slices.task[i] - 1) : kindOf(i) || '[unknown]';
  }

  /** @param {number} track */
  function trackName(track) {
    const { kind, task, cpu } = /** @type {Slices} */ (slices).tracks[track];
    if (kind === 'task') return taskName(app.data, task);
    return `CPU ${cpu - 1}: ${kind === 'cpu' ? 'tasks' : 'interrupts off'}`;
  }

  /** @param {number} i */
  function colourOf(i) {
    const { tasks } = app.data;
    const fn = functionOf(i);
    if (fn >= 0) return palette.of(fn, 0);
    const task = slices ? slices.task[i] - 1 : -1;
    return task >= 0 && !tasks.idle[task] ? binaryColour(tasks.name[task], app)
      : binaryColour(0, app);
  }

  /** @param {number} y @returns {{place: TrackPlace, depth: number} | null} depth -1: the name */
  function rowAt(y) {
    const at = y - AXIS + scene.scroll();
    const place = y < AXIS ? undefined : places.findLast(({ top }) => top <= at);
    if (!place) return null;
    const below = at - place.top - nameHeight();
    return { place, depth: below < 0 ? -1 : Math.floor(below / ROW) };
  }

  /** @param {TrackPlace} place @param {number} depth */
  const levelOf = ({ track }, depth) => nesting.tracks[track][depth] ?? NO_LEVEL;

  /** @param {number} x @param {number} y @returns {number} -1: none */
  function callAt(x, y) {
    const row = rowAt(y);
    if (!row || !row.place.open) return -1;
    const level = levelOf(row.place, row.depth);
    const time = timeAt(x);
    // One without a length is as wide as a pixel.
    const last = time + pixel();
    for (let j = intervalAt(level, time - pixel()); j < level.nr && level.begin[j] <= last; j++)
      if (level.end[j] >= time || level.end[j] === level.begin[j]) return level.of[j];
    return -1;
  }

  // Drawing

  function draw() {
    if (!slices) return;
    const colours = themeColours();
    const scroll = scene.scroll();
    for (const place of places) {
      const y = AXIS + place.top - scroll;
      if (y > scene.height || y + nameHeight() + place.depth * ROW < 0) continue;
      drawTrack(place, y, colours);
    }
    drawRange(scene, view, app);
    if (measure || (measuring && !Number.isNaN(snapped)))
      drawMeasure(measure ?? { from: snapped, to: snapped });
    drawAxis(scene, view, app.data.head.axis, { grid: false });
  }

  /**
   * @param {TrackPlace} place
   * @param {number} y
   * @param {ReturnType<typeof themeColours>} colours
   */
  function drawTrack(place, y, colours) {
    const { context, width, height } = scene;
    const matches = app.matches();
    const first = Math.max(0, Math.floor((AXIS - y - nameHeight()) / ROW));
    if (place.open)
      for (let depth = first; depth < place.depth; depth++) {
        const top = y + nameHeight() + depth * ROW;
        if (top > height) break;
        drawLevel(levelOf(place, depth), top, matches, colours);
      }
    const { kind, task, cpu } = /** @type {Slices} */ (slices).tracks[place.track];
    if (place.open)
      drawGaps(scene, view, app.data.gaps, { ...(kind === 'task' ? { task } : { cpu }),
        top: y + nameHeight(), height: place.depth * ROW });
    context.fillStyle = colours.line;
    context.fillRect(0, y, width, 1);
    context.fillStyle = colours.text;
    const nr = nesting.tracks[place.track].reduce((sum, level) => sum + level.nr, 0);
    const calls = kind === 'cpu' ? plural(nr, 'stretch', 'stretches') : plural(nr, 'call');
    const text = `${place.open ? '▾' : '▸'} ${trackName(place.track)}: ${calls}`;
    scene.label(text, 8, y + nameHeight() / 2 + 1, width - 16);
  }

  /**
   * @param {SliceLevel} level
   * @param {number} y
   * @param {Uint8Array | null} matches
   * @param {ReturnType<typeof themeColours>} colours
   */
  function drawLevel(level, y, matches, colours) {
    const { context, width } = scene;
    const { function: chosen } = app.choice;
    strip.begin();
    eachInterval(level, view, width, (j, x0, x1, nr) => {
      const i = level.of[j];
      const fn = functionOf(i);
      const wide = x1 - x0;
      const match = matches && fn >= 0 && matches[fn];
      const faint = matches && !match;
      if (nr > 1) {
        strip.set(x0, fn >= 0 && fn === chosen ? colours.accent : colourOf(i), !!faint);
        return;
      }
      const colour = colourOf(i);
      if (faint) context.globalAlpha = 0.35;
      context.fillStyle = colour;
      if (wide < 3) context.fillRect(x0, y, wide, ROW - 1);
      else drawShape(i, x0, y, wide - 1, colour, colours.background);
      context.globalAlpha = 1;
      if (wide > 14) drawText(i, x0, x1, y, faint ? colours.text : textColour(colour));
      if (match && wide > 2) outline(context, colours.text, x0, y, wide - 1, 1);
      if (fn >= 0 && fn === chosen)
        outline(context, colours.accent, x0, y, Math.max(wide - 1, 1), 2);
      if (i === hovered) outline(context, colours.muted, x0, y, wide - 1, 1);
      if (i === selected) outline(context, colours.text, x0, y, Math.max(wide - 1, 2), 2);
    });
    strip.draw(y);
  }

  /**
   * @param {number} i
   * @param {number} x
   * @param {number} y
   * @param {number} wide
   * @param {string} colour
   * @param {string} background
   */
  function drawShape(i, x, y, wide, colour, background) {
    const { context } = scene;
    const kind = kindOf(i);
    const top = kind === 'inline' ? 4 : 0;
    const cut = slices ? slices.cut[i] : 0;
    context.fillRect(x, y + top, wide, ROW - 1 - top);
    if (wide < 6) return;
    if (kind === 'interrupts off') {
      context.fillStyle = hatch(context, textColour(colour) + '40', 1);
      context.fillRect(x, y, wide, ROW - 1);
    }
    context.fillStyle = background;
    // Corners are cut off what the cpu entered without a call.
    if (kind === 'trap' || kind === 'interrupt' || kind === 'syscall')
      triangle(x, y, x + 6, y, x, y + 6);
    if (cut & 1)
      for (let at = 0; at < ROW; at += 6) triangle(x, y + at, x + 4, y + at + 3, x, y + at + 6);
    if (cut & 2)
      for (let at = 0; at < ROW; at += 6)
        triangle(x + wide, y + at, x + wide - 4, y + at + 3, x + wide, y + at + 6);
  }

  /** @param {...number} points x, y */
  function triangle(...points) {
    const { context } = scene;
    context.beginPath();
    context.moveTo(points[0], points[1]);
    context.lineTo(points[2], points[3]);
    context.lineTo(points[4], points[5]);
    context.fill();
  }

  /**
   * @param {number} i
   * @param {number} x0
   * @param {number} x1
   * @param {number} y
   * @param {string} colour
   */
  function drawText(i, x0, x1, y, colour) {
    const left = Math.max(x0, 0) + 4 + (slices && slices.cut[i] & 1 && x0 >= 0 ? 3 : 0);
    const wide = Math.min(x1, scene.width) - left - 4;
    const mark = KIND_MARKS[kindOf(i)];
    scene.context.fillStyle = colour;
    scene.label(mark ? `${mark} ${nameOf(i)}` : nameOf(i), left, y + ROW / 2, wide, true);
  }

  /** @param {Measure} of */
  function drawMeasure({ from, to }) {
    const { context, width, height } = scene;
    const { accent, background, text } = themeColours();
    const [a, b] = [from, to].map((time) => Math.round(view.x(time, width))).sort((x, y) => x - y);
    context.fillStyle = accent;
    context.globalAlpha = 0.15;
    context.fillRect(a, AXIS, b - a, height);
    context.globalAlpha = 1;
    context.fillRect(a, AXIS, 1, height);
    context.fillRect(b, AXIS, 1, height);
    context.fillRect(a, height - 26, b - a, 1);
    if (from === to) return;
    const label = axisText(Math.abs(to - from));
    const wide = scene.measure(label) + 10;
    const x = clamp((a + b - wide) / 2, 2, width - wide - 2);
    context.fillStyle = background;
    context.fillRect(x, height - 26 - ROW / 2, wide, ROW);
    context.strokeStyle = accent;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, height - 25.5 - ROW / 2, wide - 1, ROW - 1);
    context.fillStyle = text;
    context.fillText(label, x + 5, height - 26);
  }

  // What the user does

  /** @param {number} x @param {number} y @param {PointerEvent} event */
  function startDrag(x, y, event) {
    if (y < AXIS || event.shiftKey) return follower.drag(timeAt, x);
    if (!measuring) return null;
    const from = snap(x, y);
    const move = (/** @type {number} */ toX, /** @type {number} */ toY) => {
      measure = { from, to: snap(toX, toY) };
      scene.redraw();
    };
    return { move, end: (/** @type {number} */ toX, /** @type {number} */ toY) => {
      move(toX, toY);
      if (measure) app.say(`Measured: ${axisText(Math.abs(measure.to - from))}`);
    } };
  }

  /** The time at a place, or of the edge of a call near it. @param {number} x @param {number} y */
  function snap(x, y) {
    const time = timeAt(x);
    const row = rowAt(y);
    let best = time;
    let least = SNAP * pixel();
    for (let depth = 0; row?.place.open && depth < row.place.depth; depth++) {
      // The row under the pointer counts more than the others of its track.
      const far = depth === row.depth ? 1 : 2;
      const level = levelOf(row.place, depth);
      const at = intervalAt(level, time);
      for (let j = Math.max(at - 1, 0); j < Math.min(at + 2, level.nr); j++)
        for (const edge of [level.begin[j], level.end[j]])
          if (Math.abs(edge - time) * far < least) {
            least = Math.abs(edge - time) * far;
            best = edge;
          }
    }
    return best;
  }

  /** @param {boolean} on */
  function setMeasuring(on) {
    measuring = on;
    measure = null;
    snapped = NaN;
    measureButton.setAttribute('aria-pressed', String(on));
    scene.canvas.classList.toggle('is-measured', on);
    scene.redraw();
  }

  /** @param {number} x @param {number} y */
  function click(x, y) {
    const row = rowAt(y);
    if (row?.depth === -1) {
      if (!folded.delete(row.place.track)) folded.add(row.place.track);
      placeTracks();
      scene.redraw();
    } else select(callAt(x, y));
  }

  /** @param {number} i @param {boolean} [replace] */
  function select(i, replace) {
    selected = i;
    showDetails();
    scene.redraw();
    if (functionOf(i) >= 0) app.choose({ function: functionOf(i) }, replace);
  }

  /** @param {number} i */
  function zoomTo(i) {
    if (i < 0) return;
    const margin = Math.max(endOf(i) - beginOf(i), 1) * 0.05;
    view.set(beginOf(i) - margin, endOf(i) + margin, true);
  }

  /** Selects a call, and shows it. @param {number} i */
  function goTo(i) {
    const place = placeOf(i);
    if (!place) return;
    folded.delete(place.track);
    placeTracks();
    select(i, true);
    const length = endOf(i) - beginOf(i);
    const { from, to } = view.goal();
    const span = to - from;
    if (length / span * scene.width < 3)
      view.set(beginOf(i) - length * 20, endOf(i) + length * 20, true);
    else if (endOf(i) < from || beginOf(i) > to || length > span)
      view.set(beginOf(i) - Math.max(span, length) * 0.2,
        beginOf(i) + Math.max(span, length * 1.5) * 0.8, true);
    // The details take some of the height.
    const height = scene.element.clientHeight;
    const y = (placeOf(i) ?? place).top + nameHeight() + nesting.depth[i] * ROW - scene.element.scrollTop;
    if (y < nameHeight()) scene.element.scrollTop += y - nameHeight();
    else if (y + ROW + AXIS > height) scene.element.scrollTop += y + 2 * ROW + AXIS - height;
  }

  /**
   * The next call for which `fits` is true, in order of time.
   *
   * @param {1 | -1} direction
   * @param {(i: number) => boolean} fits
   * @returns {number} -1: none
   */
  function nextCall(direction, fits) {
    if (!slices) return -1;
    const shown = new Set(places.map(({ track }) => track));
    const from = selected >= 0 ? slices.begin[selected] : direction > 0 ? view.from : view.to;
    let best = -1;
    // Of those that begin together, the outer one, which has the larger number, is first.
    const isBefore = (/** @type {number} */ a, /** @type {number} */ b) => a < 0 || b < 0 ? b < 0
      : beginOf(a) === beginOf(b) ? (a > b) === (direction > 0)
        : (beginOf(a) < beginOf(b)) === (direction > 0);
    for (let i = 0; i < slices.nr; i++) {
      if (!fits(i) || i === selected || !shown.has(slices.track[i])) continue;
      const begin = slices.begin[i];
      if (selected < 0 ? (begin - from) * direction < 0 : !isBefore(selected, i)) continue;
      if (isBefore(i, best)) best = i;
    }
    return best;
  }

  /** @param {1 | -1} direction @param {(i: number) => boolean} fits */
  function goToNext(direction, fits) {
    const next = nextCall(direction, fits);
    if (next >= 0) goTo(next);
    app.say(next < 0 ? 'There is no further call in this direction.'
      : `${nameOf(next)}: ${axisText(endOf(next) - beginOf(next))}`);
  }

  /** @param {1 | -1} direction */
  function find(direction) {
    const matches = app.matches();
    if (matches) goToNext(direction, (i) => functionOf(i) >= 0 && matches[functionOf(i)] !== 0);
  }

  /** @param {KeyboardEvent} event */
  function key(event) {
    if (!slices || isForOthers(event)) return false;
    const of = slices.function[selected];
    if (event.key === '[' || event.key === ']') {
      if (of)
        goToNext(event.key === ']' ? 1 : -1, (i) => slices !== null && slices.function[i] === of);
    } else if (event.key.startsWith('Arrow')) walk(event.key);
    else if (event.key === 'm') setMeasuring(!measuring);
    else if (event.key === 'f' || event.key === 'Enter') zoomTo(selected);
    else if (event.key === 'Escape' && (measuring || measure)) setMeasuring(false);
    else if (event.key === 'Escape' && app.choice.range) app.choose({ range: null });
    else if (event.key === 'Escape' && selected >= 0) select(-1);
    else return viewportKey(event, view);
    return true;
  }

  /** @param {string} where */
  function walk(where) {
    const place = selected >= 0 ? placeOf(selected)
      : places.find(({ open, depth }) => open && depth);
    if (!place) return;
    const depth = selected >= 0 ? nesting.depth[selected] : 0;
    const level = levelOf(place, depth);
    if (selected < 0) {
      if (level.nr) goTo(level.of[Math.min(intervalAt(level, view.from), level.nr - 1)]);
      return;
    }
    // Calls of a level that begin together, such as those without a length, are in order of their
    // numbers.
    let at = intervalAt(level, beginOf(selected) - 0.5);
    while (at < level.nr && level.of[at] !== selected) at++;
    const sibling = level.of[at + (where === 'ArrowLeft' ? -1 : 1)];
    if (where === 'ArrowUp') {
      if (nesting.parent[selected]) goTo(nesting.parent[selected] - 1);
    } else if (where === 'ArrowDown') {
      const below = levelOf(place, depth + 1);
      const child = below.of[intervalAt(below, beginOf(selected))];
      if (child !== undefined && nesting.parent[child] === selected + 1) goTo(child);
    } else if (sibling !== undefined) goTo(sibling);
  }

  /** @param {number} x @param {number} y @param {PointerEvent | null} event */
  function hover(x, y, event) {
    const i = event && y > AXIS ? callAt(x, y) : -1;
    if (i !== hovered || measuring) scene.redraw();
    hovered = i;
    snapped = event && measuring ? snap(x, y) : NaN;
    if (!event) return app.tip(0, 0, null);
    const row = rowAt(y);
    const of = row && slices ? slices.tracks[row.place.track] : null;
    /** @type {(string | [string, string])[]} */
    let lines = [];
    if (i >= 0) lines = tipLines(i);
    else if (of && row && row.depth >= 0)
      lines = gapLines(app, timeAt(x),
        { ...(of.kind === 'task' ? { task: of.task } : { cpu: of.cpu }), slack: pixel() });
    return app.tip(event.clientX, event.clientY, lines.length ? lines : null);
  }

  /** @param {number} i @returns {(string | [string, string])[]} */
  function tipLines(i) {
    const fn = functionOf(i);
    /** @type {(string | [string, string])[]} */
    const lines = [nameOf(i)];
    if (fn >= 0 && binaryName(app.data, fn)) lines.push(['Binary', binaryName(app.data, fn)]);
    return [...lines, ...factsOf(i)];
  }

  /** @param {number} i @returns {[string, string][]} */
  function factsOf(i) {
    if (!slices) return [];
    const length = slices.length[i];
    const { instructions, ownInstructions, cycles, ownCycles, lines, ownLines, cut } = slices;
    /** @type {[string, string][]} */
    const facts = [['Duration', axisText(length) + (cut[i] ? ', cut' : '')]];
    if (kindOf(i)) facts.push(['Kind', kindOf(i)]);
    const self = length - nesting.children[i];
    if (nesting.children[i])
      facts.push(['Self', `${axisText(self)} (${formatPercent(self, length)})`]);
    facts.push(['Begin', axisText(slices.begin[i])]);
    if (instructions[i])
      facts.push(['Instructions',
        `${formatExact(instructions[i])}, own: ${formatExact(ownInstructions[i])}`]);
    if (cycles[i])
      facts.push(['Cycles', `${formatExact(cycles[i])}, own: ${formatExact(ownCycles[i])}`]);
    if (cycles[i] && instructions[i])
      facts.push(['Instructions per cycle', (instructions[i] / cycles[i]).toFixed(2)]);
    if (lines[i]) facts.push(['I-cache footprint', linesText(lines[i])]);
    if (lines[i] && ownLines[i]) facts.push(['Own footprint', linesText(ownLines[i])]);
    if (cut[i] & 1) facts.push(['Begin is cut', 'it began before']);
    if (cut[i] & 2) facts.push(['End is cut', 'it goes on']);
    return facts;
  }

  /** @param {number} lines */
  const linesText = (lines) => `${plural(lines, 'line')} of 64 B: ${formatBytes(lines * 64)}`;

  /** @param {number} i @returns {string} what --time wants; '' if the axis is no time */
  function timeOption(i) {
    const { start, axis } = app.data.head;
    if (axis !== 'ns' || !slices) return '';
    const begin = (BigInt(start || '0')
      + BigInt(Math.round(slices.begin[i]))).toString().padStart(10, '0');
    return `${begin.slice(0, -9)}.${begin.slice(-9)},+${Math.round(slices.length[i])}ns`;
  }

  function showDetails() {
    details.hidden = selected < 0 || !slices;
    if (details.hidden) return;
    const i = selected;
    const fn = functionOf(i);
    const caller = nesting.parent[i] - 1;
    const option = timeOption(i);
    const row = (/** @type {string} */ name, /** @type {Node | string} */ value) =>
      h('div', null, h('dt', null, name), h('dd', null, value));
    details.replaceChildren(
      h('div', { class: 'slice-title' }, h('strong', null, nameOf(i)),
        fn >= 0 && button('Show function',
        'Show the page of this function', () => app.choose({ function: fn, tab: 'function' })),
      button('Zoom', 'Zoom to it (f)', () => zoomTo(i)),
      fn >= 0 && [button('Previous call', 'The previous call of this function ([)', () => step(-1)),
        button('Next call', 'The next call of this function (])', () => step(1))],
      button('Close', 'Close the details (Esc)', () => select(-1))),
      h('dl', null, factsOf(i).map(([name, value]) => row(name, value)),
        row('Track', trackName(/** @type {Slices} */ (slices).track[i])),
        caller >= 0 ? row('Caller', button(nameOf(caller), 'Select the caller', () => goTo(caller)))
          : null,
        option ? row('As --time', h('span', null, h('code', null, option), ' ',
          button('Copy', 'Copy the option', () => copyText(`--time ${option}`, app)))) : null));
  }

  /** @param {1 | -1} direction */
  const step = (direction) => goToNext(direction, (i) => functionOf(i) === functionOf(selected));

  /** @param {number} x @param {number} y */
  function menu(x, y) {
    app.tip(0, 0, null);
    const i = selected;
    const fn = functionOf(i);
    const option = timeOption(i);
    openMenu(x, y, [
      { text: 'Zoom', key: 'f', run: () => zoomTo(i) },
      { text: 'Select its time', run: () => app.choose({ range: [Math.floor(beginOf(i)),
        Math.max(Math.ceil(endOf(i)), Math.floor(beginOf(i)) + 1)] }) },
      { text: 'Show this function', run: () => app.choose({ function: fn, tab: 'function' }),
        off: fn < 0 },
      { text: 'Next call of it', key: ']', run: () => step(1), off: fn < 0 },
      { text: 'Copy name', run: () => copyText(nameOf(i), app) },
      { text: 'Copy as --time', run: () => copyText(`--time ${option}`, app), off: !option }],
        scene.canvas);
  }

  // Updates

  function foldAll() {
    const all = slices?.tracks.map((_, track) => track) ?? [];
    if (folded.size) folded.clear();
    else all.forEach((track) => folded.add(track));
    placeTracks();
    scene.redraw();
  }

  function placeTracks() {
    if (!slices) return;
    const { task, cpu } = app.choice;
    let top = 0;
    places = [];
    for (const track of trackOrder(slices.tracks, nesting)) {
      const of = slices.tracks[track];
      if (of.kind === 'task' ? task !== null && of.task !== task : cpu !== null && of.cpu !== cpu)
        continue;
      const depth = nesting.tracks[track].length;
      const open = !folded.has(track);
      places.push({ track, top, open, depth: open ? depth : 0 });
      top += nameHeight() + (open ? depth * ROW + 4 : 0);
    }
    scene.setContent(top + AXIS);
  }

  function showFound() {
    const matches = app.matches();
    let nr = 0;
    if (matches && slices)
      for (let i = 0; i < slices.nr; i++)
        if (slices.function[i]) nr += matches[slices.function[i] - 1];
    found.textContent = matches ? `Found: ${plural(nr, 'call')}` : '';
  }

  function showNotes() {
    const { shortest, shorter } = app.data.head;
    const are = shorter === 1 ? 'is' : 'are';
    note.textContent = shorter
      ? `${plural(shorter, 'call')} shorter than ${axisText(shortest)} ${are} left out.` : '';
    const kinds = slices?.kinds.filter((kind) => KIND_MARKS[kind]) ?? [];
    // A line never ends within an entry.
    legend.textContent = kinds.map((kind) => `${KIND_MARKS[kind]} ${kind}`.replaceAll(' ', '\u00a0')).join('   ');
  }

  /** @param {Set<string>} changed */
  function update(changed) {
    const { slices: of, head } = app.data;
    const fresh = of !== slices;
    if (fresh || changed.has('theme') || changed.has('colours')) palette.forget();
    scene.element.hidden = !of;
    if (!of) {
      note.textContent = 'This recording has no calls.';
      return;
    }
    // A recording that grows: what is seen stays, unless it was all.
    const follows = changed.has('range') && (!fresh || !slices || view.whole());
    const first = !slices;
    if (fresh) {
      slices = of;
      nesting = nestSlices(of);
      selected = hovered = -1;
      view.limit(0, Math.max(head.length, 1), head.axis === 'ns' ? 10 : 4);
      showNotes();
      showDetails();
    }
    if (fresh || ['task', 'cpu', 'sizes'].some((one) => changed.has(one))) placeTracks();
    if (follows) follower.follow(!first);
    if (fresh || changed.has('search')) showFound();
    setStyle(scene.canvas, { cursor: measuring ? 'crosshair' : '' });
    scene.draw();
  }

  return { id: 'slices', label: 'Calls', element, update, key, find };
}

/** Tasks come first, the busiest of all. @param {Slices['tracks']} tracks @param {Nesting} nesting */
function trackOrder(tracks, nesting) {
  const rank = tracks.map(({ kind }, i) => kind === 'task'
    ? -1 - nesting.tracks[i].reduce((sum, level) => sum + level.nr, 0) : 0);
  return [...tracks.keys()].sort((a, b) => rank[a] - rank[b] || a - b);
}

/** @param {Slices} slices @returns {Nesting} */
function nestSlices(slices) {
  const { nr, begin, length } = slices;
  const depth = new Uint32Array(nr);
  const parent = new Uint32Array(nr);
  const children = new Float64Array(nr);
  const byTrack = groupByTrack(slices);
  const tracks = [];
  for (let t = 0; t < slices.tracks.length; t++) {
    const own = byTrack.numbers.subarray(byTrack.first[t], byTrack.first[t + 1]);
    const end = (/** @type {number} */ i) => begin[i] + length[i];
    // They are in the order of their ends. So from the last one on, parents come before what is in
    // them.
    if (own.some((i, at) => at > 0 && end(i) < end(own[at - 1])))
      own.sort((a, b) => end(a) - end(b) || a - b);
    /** @type {number[]} */
    const counts = [];
    /** @type {number[]} */
    const open = [];
    for (let at = own.length - 1; at >= 0; at--) {
      const i = own[at];
      while (open.length && begin[i] < begin[open[open.length - 1]]) open.pop();
      depth[i] = open.length;
      counts[open.length] = (counts[open.length] ?? 0) + 1;
      if (open.length) {
        parent[i] = open[open.length - 1] + 1;
        children[parent[i] - 1] += length[i];
      }
      open.push(i);
    }
    const levels = counts.map((count) => ({ nr: 0, of: new Uint32Array(count),
      begin: new Float64Array(count),
      end: new Float64Array(count) }));
    for (const i of own) {
      const level = levels[depth[i]];
      level.of[level.nr] = i;
      level.begin[level.nr] = begin[i];
      level.end[level.nr++] = end(i);
    }
    tracks.push(levels);
  }
  return { depth, parent, children, tracks };
}

/** @param {Slices} slices */
function groupByTrack({ nr, track, tracks }) {
  const first = new Uint32Array(tracks.length + 2);
  const numbers = new Uint32Array(nr);
  for (let i = 0; i < nr; i++) first[track[i] + 2]++;
  for (let t = 0; t < tracks.length; t++) first[t + 2] += first[t + 1];
  for (let i = 0; i < nr; i++) numbers[first[track[i] + 1]++] = i;
  return { first, numbers };
}
