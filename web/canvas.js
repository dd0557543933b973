// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the drawings share: sharp pixels, text that fits, axes, gestures, menus.
import { h, clamp, debounceFrame } from './base.js';
import { formatAxis, formatBytes, formatExact } from './format.js';
import { sameValue } from './state.js';
import { functionColour, themeColours } from './colours.js';

/** @typedef {import('./types.js').App} App */
/** @typedef {import('./types.js').Gaps} Gaps */
/** @typedef {'ns' | 'cycles' | 'instructions'} Axis */
/** @typedef {{move: (x: number, y: number) => void, end: (x: number, y: number) => void}} Drag */

/**
 * A canvas in an area that scrolls vertically. The canvas is as large as the visible part, so what
 * is drawn may be of any height.
 *
 * @typedef {object} Scene
 * @property {HTMLElement} element the area
 * @property {HTMLElement} space what scrolls; elements in it lie over the canvas
 * @property {HTMLCanvasElement} canvas
 * @property {CanvasRenderingContext2D} context
 * @property {number} width
 * @property {number} height
 * @property {number} ratio pixels of the device per CSS pixel
 * @property {() => number} scroll
 * @property {(content: number) => void} setContent height of what scrolls
 * @property {() => void} redraw in the next frame
 * @property {() => void} draw now
 * @property {(text: string) => number} measure
 * @property {(text: string, x: number, y: number, width: number, middle?: boolean) => void} label
 *   in one line, shortened to the width; y is its middle
 */

/**
 * The visible part of a horizontal axis.
 *
 * @typedef {object} Viewport
 * @property {number} from
 * @property {number} to
 * @property {number} min
 * @property {number} max
 * @property {(min: number, max: number, least: number) => void} limit least: what can be seen
 * @property {(from: number, to: number, animate?: boolean) => void} set
 * @property {(factor: number, at?: number, animate?: boolean) => void} zoom
 * @property {(part: number, animate?: boolean) => void} pan by this part of what is visible
 * @property {(value: number, width: number) => number} x
 * @property {(x: number, width: number) => number} at
 * @property {() => {from: number, to: number}} goal what is visible when it stops to move
 * @property {() => boolean} whole whether all is visible
 */

const FONT = 11; // px
// In px, as readSizes() sets them.
export let ROW = 18; // the height of a frame
export let AXIS = 22;
export let NAMES = 168; // the width of the names in the timeline
let screenScale = 1;
const ELLIPSIS = '…';
const NEAR = 4; // px: a pointer that moves less clicks

/** @param {number} x @returns {number} as it is on this screen: all is larger on large ones */
export function px(x) {
  return Math.round(x * screenScale);
}

/** Reads what the style has for this screen. @returns {boolean} whether it changed */
export function readSizes() {
  const style = getComputedStyle(document.documentElement);
  const before = [screenScale, NAMES];
  screenScale = parseFloat(style.getPropertyValue('--scale')) || 1;
  [ROW, AXIS] = [px(18), px(22)];
  NAMES = parseFloat(style.getPropertyValue('--names')) || px(168);
  return !sameValue(before, [screenScale, NAMES]);
}

function reducedMotion() {
  return matchMedia('(prefers-reduced-motion: reduce)').matches;
}

// Canvases

/** @param {CanvasRenderingContext2D} context @param {() => string} font */
function glyphWidths(context, font) {
  /** @type {Map<string, number>} */
  let widths = new Map();
  let of = '';
  return (/** @type {string} */ glyph) => {
    if (of !== font()) {
      of = font();
      widths = new Map();
    }
    let width = widths.get(glyph);
    if (width === undefined) widths.set(glyph, width = context.measureText(glyph).width);
    return width;
  };
}

/**
 * @param {(glyph: string) => number} measure
 * @param {string} text
 * @param {number} width
 * @param {boolean} middle whether the middle is left out, not the end
 */
function fitText(measure, text, width, middle) {
  let all = 0;
  for (let i = 0; i < text.length && all <= width; i++) all += measure(text[i]);
  if (all <= width) return text;
  let rest = width - measure(ELLIPSIS);
  let front = 0;
  let back = text.length;
  for (let atFront = true; front < back; atFront = !middle || !atFront) {
    rest -= measure(text[atFront ? front : back - 1]);
    if (rest < 0) break;
    if (atFront) front++;
    else back--;
  }
  return front < 2 ? '' : text.slice(0, front) + ELLIPSIS + (middle ? text.slice(back) : '');
}

/**
 * @param {{label: string, draw: (scene: Scene) => void, className?: string}} options
 * @returns {Scene}
 */
export function createScene({ label, draw, className = '' }) {
  const canvas = h('canvas', { class: 'drawing-canvas', tabindex: 0, role: 'img',
    'aria-label': label });
  const space = h('div', { class: 'drawing-space' }, canvas);
  const element = h('div', { class: `drawing ${className}` }, space);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d',
    { alpha: false }));
  let font = `${FONT}px sans-serif`;
  let scaledBy = 0;
  const measure = glyphWidths(context, () => font);
  /** @type {Scene} */
  const scene = { element, space, canvas, context, width: 0, height: 0, ratio: 1,
    scroll: () => element.scrollTop,
    setContent: (content) => { space.style.height = `${Math.min(content, 15e6)}px`; },
    redraw: debounceFrame(() => scene.draw()),
    draw: drawNow,
    measure: (text) => [...text].reduce((sum, glyph) => sum + measure(glyph), 0),
    label: (text, x, y, width, middle = false) => {
      const fitted = width < 8 ? '' : fitText(measure, text, width, middle);
      if (fitted) context.fillText(fitted, x, y);
    } };

  function resize() {
    const ratio = devicePixelRatio || 1;
    const width = element.clientWidth;
    const height = element.clientHeight;
    if (width === scene.width && height === scene.height && ratio === scene.ratio && scaledBy === screenScale)
      return;
    scaledBy = screenScale;
    Object.assign(scene, { width, height, ratio });
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    // Exactly as many pixels as the device has, if a CSS pixel is not a whole number of them.
    canvas.style.width = `${canvas.width / ratio}px`;
    canvas.style.height = `${canvas.height / ratio}px`;
    font = `${FONT * screenScale}px ${getComputedStyle(element).fontFamily}`;
  }

  function drawNow() {
    resize();
    if (!scene.width || !scene.height) return;
    context.setTransform(scene.ratio, 0, 0, scene.ratio, 0, 0);
    context.font = font;
    context.textBaseline = 'middle';
    context.textAlign = 'left';
    context.globalAlpha = 1;
    context.lineWidth = 1;
    context.fillStyle = themeColours().background;
    context.fillRect(0, 0, scene.width, scene.height);
    draw(scene);
  }

  // At once: a resized canvas is empty until it is drawn.
  new ResizeObserver(() => {
    if (element.clientWidth !== scene.width || element.clientHeight !== scene.height) scene.draw();
  }).observe(element);
  element.addEventListener('scroll', scene.redraw, { passive: true });
  watchRatio(scene);
  return scene;
}

/** The ratio changes when the window moves to another screen. @param {Scene} scene */
function watchRatio(scene) {
  matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener('change', () => {
    scene.redraw();
    watchRatio(scene);
  }, { once: true });
}

/** @type {Map<string, CanvasPattern | null>} */
const hatchCache = new Map();

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} colour
 * @param {number} style 0: lines for what is missing; else patterns of categories
 * @returns {CanvasPattern | string}
 */
export function hatch(context, colour, style = 0) {
  const key = `${colour} ${style}`;
  let pattern = hatchCache.get(key);
  if (pattern === undefined) {
    pattern = context.createPattern(patternTile(colour, style), 'repeat');
    hatchCache.set(key, pattern);
  }
  return pattern ?? colour;
}

/** @param {string} colour @param {number} style */
function patternTile(colour, style) {
  const tile = h('canvas', { width: 8, height: 8 });
  const context = /** @type {CanvasRenderingContext2D} */ (tile.getContext('2d'));
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = style ? 1 : 1.5;
  /** @type {[number, number, number, number][][]} */
  const lines = [[[-2, 10, 10, -2], [-6, 6, 6, -6], [2, 14, 14, 2]], [[-2, -2, 10, 10]], [],
    [[0, 1.5, 8, 1.5], [0, 5.5, 8, 5.5]], [[1.5, 0, 1.5, 8], [5.5, 0, 5.5, 8]],
    [[-2, 10, 10, -2], [-2, -2, 10, 10]]];
  context.beginPath();
  for (const [x0, y0, x1, y1] of lines[style % lines.length]) {
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
  }
  context.stroke();
  if (style % lines.length === 2) for (const at of [1, 5]) context.fillRect(at, at, 1.5, 1.5);
  return tile;
}

// Axes

/** @param {number} x @returns {number} 1, 2 or 5 times a power of 10, not smaller than x */
function niceStep(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return power * ([1, 2, 5].find((n) => n * power >= x * 0.999) ?? 10);
}

/** @param {number} value @param {Axis} axis @param {number} step */
function tickText(value, axis, step) {
  if (axis === 'ns') return value === 0 ? '0' : formatAxis(value, axis, Math.max(step, 0.001));
  const [unit, name] = value >= 1e9 ? [1e9, ' G'] : value >= 1e6 ? [1e6, ' M']
    : value >= 1e4 ? [1e3, ' k'] : [1, ''];
  return (value / unit).toFixed(clamp(Math.ceil(Math.log10(unit / step) - 1e-9), 0, 9)) + name;
}

/**
 * @param {Scene} scene
 * @param {Viewport} view
 * @param {Axis} axis
 * @param {{left?: number, grid?: boolean}} [options] grid: lines through the whole scene
 */
export function drawAxis(scene, view, axis, { left = 0, grid = true } = {}) {
  const { context } = scene;
  const colours = themeColours();
  const width = scene.width - left;
  const span = view.to - view.from;
  if (width < 40) return;
  let step = niceStep(Math.max(span * px(70) / width, 1e-6));
  const widest = scene.measure(tickText(view.to - view.to % step, axis, step)) + 24;
  step = niceStep(Math.max(span * Math.max(widest, px(70)) / width, 1e-6));
  context.fillStyle = colours.background;
  context.fillRect(left, 0, width, AXIS);
  for (let i = Math.ceil(view.from / step); i * step <= view.to; i++) {
    const x = Math.round(left + view.x(i * step, width));
    context.fillStyle = colours.line;
    context.fillRect(x, grid ? 0 : AXIS - 6, 1, grid ? scene.height : 6);
    context.fillStyle = colours.muted;
    context.fillText(tickText(i * step, axis, step), x + 4, AXIS / 2);
  }
  if (axis !== 'ns') {
    const text = `${axis} `;
    context.fillStyle = colours.background;
    context.fillRect(scene.width - scene.measure(text) - 6, 0, 200, AXIS - 1);
    context.fillStyle = colours.muted;
    context.fillText(text, scene.width - scene.measure(text), AXIS / 2);
  }
  context.fillStyle = colours.line;
  context.fillRect(left, AXIS - 1, width, 1);
}

/** @param {() => void} changed @returns {Viewport} */
export function createViewport(changed) {
  let least = 1e-6;
  let target = [0, 1];
  let frame = 0;
  let last = 0;
  /** @type {Viewport} */
  const view = { from: 0, to: 1, min: 0, max: 1,
    limit(min, max, smallest) {
      Object.assign(view, { min, max: Math.max(max, min + 1e-6) });
      least = Math.min(smallest, view.max - view.min);
    },
    set(from, to, animate = false) {
      const length = clamp(to - from, least, view.max - view.min);
      const begin = clamp((from + to - length) / 2, view.min, view.max - length);
      target = [begin, begin + length];
      if (animate && !reducedMotion()) {
        last = frame ? last : performance.now();
        frame ||= requestAnimationFrame(step);
      } else {
        cancelAnimationFrame(frame);
        frame = 0;
        [view.from, view.to] = target;
        changed();
      }
    },
    zoom(factor, at = (target[0] + target[1]) / 2, animate = false) {
      const length = Math.max((target[1] - target[0]) * factor, least);
      const begin = at - (at - target[0]) * length / (target[1] - target[0]);
      view.set(begin, begin + length, animate);
    },
    pan(part, animate = false) {
      const by = (target[1] - target[0]) * part;
      const inside = clamp(by, view.min - target[0], view.max - target[1]);
      view.set(target[0] + inside, target[1] + inside, animate);
    },
    x: (value, width) => (value - view.from) / (view.to - view.from) * width,
    at: (x, width) => view.from + x / width * (view.to - view.from),
    goal: () => ({ from: target[0], to: target[1] }),
    whole: () => target[1] - target[0] >= (view.max - view.min) * 0.9999 };

  /** @param {number} now */
  function step(now) {
    // Half of the way in 40 ms, at any frame rate.
    const part = 1 - 2 ** -(Math.max(now - last, 4) / 40);
    last = now;
    const near = (target[1] - target[0]) * 5e-4;
    view.from += (target[0] - view.from) * part;
    view.to += (target[1] - view.to) * part;
    const done = Math.abs(target[0] - view.from) < near && Math.abs(target[1] - view.to) < near;
    if (done) [view.from, view.to] = target;
    frame = done ? 0 : requestAnimationFrame(step);
    changed();
  }
  return view;
}

// Gestures

/**
 * @typedef {object} Gestures
 * @property {() => number} [left] where the axis begins
 * @property {(x: number, y: number, event: PointerEvent) => Drag | null} [drag] null: the drag pans
 * @property {(x: number, y: number, event: MouseEvent) => void} [click]
 * @property {(x: number, y: number, event: MouseEvent) => void} [double]
 * @property {(x: number, y: number, event: MouseEvent) => void} [menu]
 * @property {(x: number, y: number, event: PointerEvent | null) => void} [hover] event is null: it
 * left
 */

/**
 * A drag pans, two fingers and the wheel with Ctrl zoom. The wheel scrolls if there is something to
 * scroll, else it zooms, too.
 *
 * @param {Scene} scene
 * @param {Viewport} view
 * @param {Gestures} gestures
 */
export function addGestures(scene, view, gestures) {
  const { canvas, element } = scene;
  const left = gestures.left ?? (() => 0);
  /** @type {Map<number, [number, number]>} */
  const pointers = new Map();
  /** @type {Drag | null} */
  let drag = null;
  /** @type {[number, number] | null} */
  let pressed = null;
  let moved = false;

  const place = (/** @type {MouseEvent} */ event) => {
    const box = canvas.getBoundingClientRect();
    return /** @type {[number, number]} */ ([event.clientX - box.left, event.clientY - box.top]);
  };
  const spread = () => {
    const [a, b] = [...pointers.values()];
    return { distance: Math.max(Math.hypot(a[0] - b[0], a[1] - b[1]), 10), x: (a[0] + b[0]) / 2 };
  };

  /** @param {number} dx @param {number} dy */
  function pan(dx, dy) {
    if (dx) view.pan(-dx / (scene.width - left()));
    element.scrollTop -= dy;
  }

  /** @param {PointerEvent} event @param {[number, number]} to */
  function pinch(event, to) {
    const before = spread();
    pointers.set(event.pointerId, to);
    const after = spread();
    view.zoom(before.distance / after.distance, view.at(after.x - left(), scene.width - left()));
    pan(after.x - before.x, 0);
  }

  /** @param {PointerEvent} event */
  function down(event) {
    if (event.button !== 0) return;
    const at = place(event);
    pointers.set(event.pointerId, at);
    if (pointers.size === 1) {
      pressed = at;
      moved = false;
      drag = gestures.drag?.(at[0], at[1], event) ?? null;
    } else {
      drag?.end(...(pressed ?? at));
      drag = null;
      moved = true;
    }
  }

  /** @param {PointerEvent} event */
  function move(event) {
    const at = place(event);
    const from = pointers.get(event.pointerId);
    if (!from) return gestures.hover?.(at[0], at[1], event);
    if (pointers.size > 1) return pinch(event, at);
    if (!moved && pressed && Math.hypot(at[0] - pressed[0], at[1] - pressed[1]) < NEAR)
      return undefined;
    if (!moved) canvas.setPointerCapture(event.pointerId);
    moved = true;
    pointers.set(event.pointerId, at);
    gestures.hover?.(0, 0, null);
    if (drag) return drag.move(at[0], at[1]);
    canvas.classList.add('is-panned');
    return pan(at[0] - from[0], at[1] - from[1]);
  }

  /** @param {PointerEvent} event */
  function up(event) {
    if (!pointers.delete(event.pointerId)) return;
    canvas.classList.remove('is-panned');
    if (moved) drag?.end(...place(event));
    drag = null;
  }

  /** @param {WheelEvent} event */
  function wheel(event) {
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? scene.height : 1;
    const dx = (event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX) * unit;
    const dy = event.shiftKey ? 0 : event.deltaY * unit;
    const scrolls = element.scrollHeight > element.clientHeight + 1;
    const zooms = event.ctrlKey || event.metaKey || !scrolls;
    if (Math.abs(dx) > Math.abs(dy)) view.pan(dx / (scene.width - left()));
    else if (zooms && dy) {
      const at = view.at(place(event)[0] - left(), scene.width - left());
      view.zoom(Math.exp(clamp(dy, -30, 30) * 0.01), at);
    } else return;
    gestures.hover?.(0, 0, null);
    event.preventDefault();
  }

  canvas.addEventListener('pointerdown', down);
  canvas.addEventListener('pointermove', move);
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('pointerleave', () => gestures.hover?.(0, 0, null));
  element.addEventListener('wheel', wheel, { passive: false });
  canvas.addEventListener('click', (event) => {
    if (!moved) gestures.click?.(...place(event), event);
  });
  canvas.addEventListener('dblclick', (event) => {
    if (!moved) gestures.double?.(...place(event), event);
  });
  canvas.addEventListener('contextmenu', (event) => {
    if (!gestures.menu) return;
    event.preventDefault();
    gestures.menu(...place(event), event);
  });
}

/** @param {KeyboardEvent} event @returns {boolean} whether a key is not for a drawing */
export function isForOthers(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  return event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented
    || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName ?? '');
}

/**
 * Zooms with W and S, + and -, pans with A and D; 0 shows all.
 * @param {KeyboardEvent} event
 * @param {Viewport} view
 */
export function viewportKey(event, view) {
  switch (event.key.toLowerCase()) {
    case 'w': case '+': case '=': view.zoom(0.6, undefined, true); return true;
    case 's': case '-': view.zoom(1 / 0.6, undefined, true); return true;
    case 'a': view.pan(-0.2, true); return true;
    case 'd': view.pan(0.2, true); return true;
    case '0': view.set(view.min, view.max, true); return true;
    default: return false;
  }
}

/**
 * Gives keys to a view while its canvas has the focus.
 * @param {Scene} scene
 * @param {(event: KeyboardEvent) => boolean} key
 */
export function listenKeys(scene, key) {
  scene.canvas.addEventListener('keydown', (event) => {
    if (!key(event)) return;
    event.preventDefault();
    event.stopPropagation();
  });
}

// A range of time

/**
 * Selects a range while the pointer is dragged.
 *
 * @param {App} app
 * @param {(x: number) => number} timeAt
 * @param {number} anchor the time of the other edge
 * @param {(range: [number, number]) => void} [chose]
 * @returns {Drag}
 */
export function rangeDrag(app, timeAt, anchor, chose) {
  // The first change makes an entry in the history, which the others replace: going back undoes the
  // drag.
  let entered = false;
  const choose = (/** @type {number} */ x) => {
    const time = clamp(timeAt(x), 0, app.data.head.length);
    // Whole numbers, as the data and --time have; at least one.
    const begin = Math.floor(Math.min(time, anchor));
    /** @type {[number, number]} */
    const range = [begin, Math.max(Math.ceil(Math.max(time, anchor)), begin + 1)];
    app.choose({ range }, entered);
    chose?.(app.choice.range ?? range);
    entered = true;
  };
  return { move: choose, end: choose };
}

/**
 * Shows a range that was selected elsewhere: in the timeline, or by going back in the history.
 *
 * @param {App} app
 * @param {Viewport} view
 */
export function createFollower(app, view) {
  /** @type {[number, number] | null} */
  let own = null;
  return {
    drag: (/** @type {(x: number) => number} */ timeAt, /** @type {number} */ x) =>
      rangeDrag(app, timeAt, timeAt(x), (range) => { own = range; }),
    follow: (/** @type {boolean} */ animate) => {
      const { range } = app.choice;
      if (range && sameValue(range, own)) return;
      own = null;
      view.set(...(range ?? /** @type {[number, number]} */ ([view.min, view.max])), animate);
    } };
}

/**
 * Veils what is not in the selected range.
 * @param {Scene} scene
 * @param {Viewport} view
 * @param {App} app
 * @param {number} left
 */
export function drawRange(scene, view, app, left = 0) {
  const { range } = app.choice;
  if (!range) return;
  const { context } = scene;
  const width = scene.width - left;
  const [a, b] = range.map((time) => Math.round(left + clamp(view.x(time, width), 0, width)));
  context.globalAlpha = 0.62;
  context.fillStyle = themeColours().background;
  context.fillRect(left, 0, a - left, scene.height);
  context.fillRect(b, 0, scene.width - b, scene.height);
  context.globalAlpha = 1;
  context.fillStyle = themeColours().accent;
  context.fillRect(a - 1, 0, 1, scene.height);
  context.fillRect(b, 0, 1, scene.height);
  context.fillRect(a, 0, b - a, 2);
}

// Gaps

/**
 * @param {Scene} scene
 * @param {Viewport} view
 * @param {Gaps} gaps
 * @param {{cpu?: number, task?: number, left?: number, top: number, height: number}} lane 0: of all
 */
export function drawGaps(scene, view, gaps, { cpu = 0, task = 0, left = 0, top, height }) {
  const { context } = scene;
  const width = scene.width - left;
  let drawn = -1;
  context.fillStyle = hatch(context, themeColours().gap || themeColours().muted);
  for (let i = 0; i < gaps.nr; i++) {
    if (gaps.end[i] < view.from || gaps.begin[i] > view.to || !isGapOf(gaps, i, cpu, task))
      continue;
    const x0 = clamp(view.x(gaps.begin[i], width), 0, width);
    const x1 = Math.max(clamp(view.x(gaps.end[i], width), 0, width), x0 + 2);
    if (x1 <= drawn) continue;
    context.fillRect(left + x0, top, x1 - x0, height);
    drawn = x1;
  }
}

/** @param {Gaps} gaps @param {number} i @param {number} cpu @param {number} task */
function isGapOf(gaps, i, cpu, task) {
  return (!gaps.cpu[i] || !cpu || gaps.cpu[i] === cpu)
    && (!gaps.task[i] || !task || gaps.task[i] === task);
}

/**
 * @param {App} app
 * @param {number} time
 * @param {{cpu?: number, task?: number, slack?: number}} [of] slack: how far it may be away
 * @returns {(string | [string, string])[]} lines of a tooltip
 */
export function gapLines(app, time, { cpu = 0, task = 0, slack = 0 } = {}) {
  const { gaps, head } = app.data;
  for (let i = 0; i < gaps.nr; i++) {
    if (gaps.begin[i] - slack > time || gaps.end[i] + slack < time || !isGapOf(gaps, i, cpu, task))
      continue;
    /** @type {(string | [string, string])[]} */
    const lines = ['Data is missing here',
      ['For', formatAxis(gaps.end[i] - gaps.begin[i], head.axis)]];
    if (gaps.samples[i]) lines.push(['Lost samples', formatExact(gaps.samples[i])]);
    if (gaps.bytes[i]) lines.push(['Lost data', formatBytes(gaps.bytes[i])]);
    return lines;
  }
  return [];
}

// Intervals

/**
 * Intervals in order of time, which do not overlap.
 * @typedef {{nr: number, begin: Float64Array, end: Float64Array}} Intervals
 */

/**
 * Calls paint for each interval that is visible, and once for all that share a pixel: so the cost
 * depends on the width, not on the number of intervals.
 *
 * @param {Intervals} intervals
 * @param {Viewport} view
 * @param {number} width
 * @param {(i: number, x0: number, x1: number, nr: number) => void} paint
 */
export function eachInterval({ nr, begin, end }, view, width, paint) {
  const { from, to } = view;
  const scale = width / (to - from);
  for (let i = firstEndAfter(end, 0, nr, from); i < nr && begin[i] < to;) {
    const x0 = (begin[i] - from) * scale;
    const x1 = (end[i] - from) * scale;
    if (x1 - x0 >= 1) {
      paint(i++, Math.max(x0, -1), Math.min(x1, width + 1), 1);
      continue;
    }
    const pixel = Math.floor(x0);
    const next = firstEndAfter(end, i + 1, nr, from + (pixel + 1) / scale);
    paint(i, pixel, pixel + 1, next - i);
    i = next;
  }
}

/**
 * @param {Float64Array} end
 * @param {number} low
 * @param {number} nr
 * @param {number} time
 * @returns {number} the first interval from low on that ends after this time
 */
function firstEndAfter(end, low, nr, time) {
  // Steps that double: what is looked for is mostly near.
  let high = low;
  for (let step = 1; high < nr && end[high] <= time; step *= 2) {
    low = high + 1;
    high += step;
  }
  high = Math.min(high, nr);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (end[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The first interval that ends after a time.
 * @param {Intervals} intervals
 * @param {number} time
 * @returns {number}
 */
export function intervalAt({ nr, end }, time) {
  return firstEndAfter(end, 0, nr, time);
}

/**
 * A row of blocks as wide as a pixel. To draw them as one image is much faster than as many
 * rectangles.
 *
 * @param {Scene} scene
 */
export function createStrip(scene) {
  const canvas = h('canvas', { width: 1, height: 1 });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d',
    { willReadFrequently: true }));
  let image = context.createImageData(1, 1);
  let pixels = new Uint32Array(image.data.buffer);
  let used = false;
  /** @type {Map<string, number>} */
  const numbers = new Map();
  return {
    begin() {
      if (canvas.width !== scene.width && scene.width) {
        canvas.width = scene.width;
        image = context.createImageData(scene.width, 1);
        pixels = new Uint32Array(image.data.buffer);
      } else if (used) pixels.fill(0);
      used = false;
    },
    /** @param {number} x @param {string} colour #rrggbb @param {boolean} faint */
    set(x, colour, faint) {
      let number = numbers.get(colour);
      if (number === undefined) {
        const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
        numbers.set(colour, number = r | g << 8 | b << 16);
      }
      pixels[x] = number | (faint ? 0x60000000 : 0xff000000);
      used = true;
    },
    /** @param {number} y */
    draw(y) {
      if (!used) return;
      context.putImageData(image, 0, 0);
      scene.context.imageSmoothingEnabled = false;
      scene.context.drawImage(canvas, 0, y, scene.width, ROW - 1);
    } };
}

// Boxes

/** Colours of functions, kept until forget(): there are many in a drawing. @param {App} app */
export function createPalette(app) {
  /** @type {(string | undefined)[][]} by category and function */
  let kept = [];
  return {
    forget: () => { kept = []; },
    of: (/** @type {number} */ fn, /** @type {number} */ category) =>
      (kept[category] ??= [])[fn] ??= functionColour(fn, category, app),
  };
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} colour
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} [line]
 */
export function outline(context, colour, x, y, width, line = 2) {
  context.strokeStyle = colour;
  context.lineWidth = line;
  context.strokeRect(x + line / 2, y + line / 2, Math.max(width - line, 0.5), ROW - 1 - line);
}

// Controls

/** @typedef {{text: string, key?: string, run: () => void, off?: boolean}} MenuItem */

/**
 * @param {number} x
 * @param {number} y
 * @param {MenuItem[]} items
 * @param {HTMLElement} back gets the focus afterwards
 */
export function openMenu(x, y, items, back) {
  const close = () => {
    menu.remove();
    removeEventListener('pointerdown', outside, true);
    back.focus({ preventScroll: true });
  };
  const outside = (/** @type {PointerEvent} */ event) => {
    if (!menu.contains(/** @type {Node} */ (event.target))) close();
  };
  const buttons = items.map(({ text, key, run, off }) =>
    h('button', { type: 'button', role: 'menuitem',
    disabled: off, onclick: () => { close(); run(); } }, text, key ? h('kbd', null, key) : null));
  const menu = h('div', { class: 'drawing-menu', role: 'menu',
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
    const usable = buttons.filter((button) => !button.disabled);
    const at = usable.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) usable[(at + by + usable.length) % usable.length].focus();
    else if (event.key === 'Escape' || event.key === 'Tab') close();
    else if (event.key !== 'Enter' && event.key !== ' ') return;
    event.stopPropagation();
    if (event.key !== 'Enter' && event.key !== ' ') event.preventDefault();
  } }, buttons);
  document.body.append(menu);
  menu.style.left = `${clamp(x, 0, Math.max(innerWidth - menu.offsetWidth - 4, 0))}px`;
  menu.style.top = `${clamp(y, 0, Math.max(innerHeight - menu.offsetHeight - 4, 0))}px`;
  addEventListener('pointerdown', outside, true);
  buttons.find((button) => !button.disabled)?.focus();
}

/**
 * Buttons of which one is pressed.
 *
 * @template {string | boolean} T
 * @param {string} label
 * @param {[T, string, string?][]} options value, text, title
 * @param {(value: T) => void} choose
 * @returns {{element: HTMLElement, show: (value: T) => void}}
 */
export function segments(label, options, choose) {
  const buttons = options.map(([value, text, title]) => h('button', { type: 'button', title,
    onclick: () => choose(value) }, text));
  return { element: h('div', { class: 'segments', role: 'group', 'aria-label': label }, buttons),
    show: (value) => buttons.forEach((button, i) =>
      button.setAttribute('aria-pressed', String(options[i][0] === value))) };
}

/** @param {string} text @param {App} app */
export async function copyText(text, app) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Not all browsers have a clipboard for a page that is a file.
    const area = h('textarea', { class: 'drawing-unseen', 'aria-hidden': 'true' });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  app.say(`Copied: ${text}`);
}
