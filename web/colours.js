// SPDX-License-Identifier: GPL-2.0-or-later
//
// Colours of functions, categories and changes, in the light and the dark theme.
import { clamp } from './base.js';

/** @typedef {import('./types.js').App} App */
/** @typedef {{background: string, text: string, muted: string, line: string, accent: string,
 *   selection: string,
 *   gap: string, warn: string, dark: boolean}} ThemeColours */

// Hues of well-known categories; others get one by their names.
/** @type {Record<string, number>} */
const CATEGORY_HUES = { kernel: 24, user: 212, interrupt: 350, idle: -1, cpu: 175, lost: 310,
  other: -1 };

const systemDark = globalThis.matchMedia?.('(prefers-color-scheme: dark)');
/** @type {{key: string, colours: ThemeColours, data: object | null,
 *   functions: Map<string, (string | undefined)[]>} | null} */
let themeCache = null;
/** @type {Map<string, string>} */
const textColours = new Map();

/** @returns {boolean} */
function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme === 'dark' || (theme !== 'light' && !!systemDark?.matches);
}

/** @param {() => void} fn called when the system's theme changes */
export function onSystemTheme(fn) {
  systemDark?.addEventListener('change', fn);
}

function themeState() {
  const dark = isDark();
  const key = dark ? 'dark' : 'light';
  if (themeCache?.key === key) return themeCache;
  const style = getComputedStyle(document.documentElement);
  const read = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  /** @type {ThemeColours} */
  const colours = { background: read('background'), text: read('text'), muted: read('muted'),
    line: read('line'),
    accent: read('accent'), selection: read('selection'), gap: read('gap'), warn: read('warn'),
      dark };
  themeCache = { key, colours, data: null, functions: new Map() };
  return themeCache;
}

/** @returns {ThemeColours} the theme's colours, as in style.css */
export function themeColours() {
  return themeState().colours;
}

/** @param {string} text @returns {number} 32 bits (FNV-1a) */
function hashText(text) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/**
 * @param {number} hue
 * @param {number} saturation
 * @param {number} lightness 0...1
 * @returns {string} #rrggbb
 */
function hsl(hue, saturation, lightness) {
  const a = saturation * Math.min(lightness, 1 - lightness);
  const channel = (/** @type {number} */ n) => {
    const k = (n + hue / 30) % 12;
    const x = lightness - a * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return Math.round(255 * x).toString(16).padStart(2, '0');
  };
  return `#${channel(0)}${channel(8)}${channel(4)}`;
}

/**
 * A calm colour of a hue (negative: grey); `shade` 0...1 varies it a little.
 *
 * @param {number} hue
 * @param {number} shade
 */
function calm(hue, shade) {
  const saturation = hue < 0 ? 0.03 : isDark() ? 0.34 : 0.58;
  const lightness = isDark() ? 0.27 + 0.07 * shade : 0.74 + 0.08 * shade;
  return hsl(Math.max(hue, 0), saturation, lightness);
}

/** @param {string} name @returns {number} */
function categoryHue(name) {
  return CATEGORY_HUES[name.toLowerCase()] ?? hashText(name) % 360;
}

/** @param {number} index @param {App} app @returns {string} */
export function categoryColour(index, app) {
  return calm(categoryHue(app.data.head.categories[index] ?? ''), 0.5);
}

/**
 * @param {number} fn
 * @param {number} category
 * @param {App} app
 * @returns {string} by choice.colours
 */
export function functionColour(fn, category, app) {
  const state = themeState();
  if (state.data !== app.data) {
    state.data = app.data;
    state.functions.clear();
  }
  const by = app.choice.colours;
  const key = by === 'category' ? `category${category}` : by;
  let cache = state.functions.get(key);
  if (!cache) state.functions.set(key, cache = []);
  return cache[fn] ??= makeColour(fn, category, app);
}

/** @param {number} fn @param {number} category @param {App} app */
function makeColour(fn, category, app) {
  const { functions, strings, head } = app.data;
  const name = hashText(strings[functions.name[fn]] ?? '');
  const shade = ((name >>> 9) % 64) / 63;
  if (app.choice.colours === 'category')
    return calm(categoryHue(head.categories[category] ?? ''), shade);
  // Hues of names are warm, as in other flame graphs.
  if (app.choice.colours === 'name') return calm(name % 62, shade);
  // The hue varies a little, so that frames of one binary can be told apart.
  return binaryColour(functions.binary[fn], app, shade, (name >>> 16) % 33 - 16);
}

/**
 * @param {number} binary its name
 * @param {App} app
 * @param {number} [shade] 0...1
 * @param {number} [turn] of the hue
 * @returns {string}
 */
export function binaryColour(binary, app, shade = 0.5, turn = 0) {
  if (!binary) return calm(-1, shade);
  // The golden angle keeps hues of similar hashes apart.
  const hue = hashText(baseNameOf(app.data.strings[binary])) * 137.508;
  return calm((hue + turn + 360) % 360, shade);
}

/** @param {string} path */
function baseNameOf(path) {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** A line on the background. @param {string} name @returns {string} */
export function lineColour(name) {
  return hsl((hashText(name) * 137.508) % 360, 0.6, isDark() ? 0.62 : 0.38);
}

/** @param {string} colour #rrggbb @returns {number} relative luminance, as WCAG defines it */
function luminance(colour) {
  const linear = [1, 3, 5].map((at) => {
    const x = parseInt(colour.slice(at, at + 2), 16) / 255;
    return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

/**
 * @param {string} background #rrggbb
 * @returns {string} text on it; the contrast is at least 4.5:1
 */
export function textColour(background) {
  let colour = textColours.get(background);
  if (!colour) {
    const light = luminance(background);
    // #181b20 and #f2f4f7 where they suffice: they are calmer. Black or white always does.
    if (light > 0.179) colour = (light + 0.05) / 0.0607 >= 4.5 ? '#181b20' : '#000000';
    else colour = 0.955 / (light + 0.05) >= 4.5 ? '#f2f4f7' : '#ffffff';
    textColours.set(background, colour);
  }
  return colour;
}

/**
 * The colour of a change: red is more (slower), blue is less. Texts must say it, too.
 *
 * @param {number} before
 * @param {number} after on the same scale
 * @returns {string}
 */
export function compareColour(before, after) {
  const ratio = after === before ? 0 : before <= 0 ? 2 : after <= 0 ? -2
    : Math.log2(after / before);
  // Steps, so that there are few colours; a change by a factor of 4 has the strongest one.
  const strength = Math.round(clamp(ratio / 2, -1, 1) * 12) / 12;
  const hue = strength < 0 ? 214 : 8;
  const x = Math.abs(strength);
  return isDark() ? hsl(hue, 0.05 + 0.5 * x, 0.24 + 0.1 * x)
    : hsl(hue, 0.05 + 0.75 * x, 0.9 - 0.22 * x);
}
