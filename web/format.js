// SPDX-License-Identifier: GPL-2.0-or-later
//
// Numbers with their units.

/** @type {[number, string][]} */
const TIME_UNITS = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
/** @type {[number, string][]} */
const COUNT_UNITS = [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
/** @type {[number, string][]} */
const BYTE_UNITS = [[2 ** 50, 'PiB'], [2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']];

/** @param {number} x @param {number} digits that count */
function significant(x, digits) {
  const whole = Math.abs(x) < 1 ? 1 : Math.floor(Math.log10(Math.abs(x))) + 1;
  return x.toFixed(Math.max(0, digits - whole));
}

/**
 * @param {number} ns
 * @param {number} [precision] what the last digit may be, in ns; by default there are four digits
 * @returns {string} "1.234 ms"
 */
export function formatTime(ns, precision) {
  if (!Number.isFinite(ns)) return '–';
  if (ns === 0) return '0 s';
  const size = Math.max(Math.abs(ns), precision ?? 0);
  const [unit, name] = TIME_UNITS.find(([limit]) => size >= limit * 0.99995) ?? [1, 'ns'];
  if (precision === undefined)
    return `${unit === 1 && Number.isInteger(ns) ? ns : significant(ns / unit, 4)} ${name}`;
  const digits = clampDigits(Math.ceil(-Math.log10(precision / unit) - 1e-9));
  return `${(ns / unit).toFixed(digits)} ${name}`;
}

/** @param {number} digits */
function clampDigits(digits) {
  return Math.min(9, Math.max(0, digits));
}

/** @param {number} value @param {'ns' | 'cycles' | 'instructions'} axis @param {number} [precision] */
export function formatAxis(value, axis, precision) {
  return axis === 'ns' ? formatTime(value, precision) : `${formatCount(value)} ${axis}`;
}

/** @param {number} n @param {[number, string][]} units @param {string} [plain] the unit below all of them */
function scaled(n, units, plain) {
  const found = units.find(([limit]) => Math.abs(n) >= limit * 0.9995);
  if (found) return `${significant(n / found[0], 3)} ${found[1]}`;
  return (Number.isInteger(n) ? String(n) : significant(n, 3)) + (plain ? ` ${plain}` : '');
}

/** @param {number} n @returns {string} "12.3 k" */
export function formatCount(n) {
  return Number.isFinite(n) ? scaled(n, COUNT_UNITS) : '–';
}

/** @param {number} n @returns {string} "12.3 MiB" */
export function formatBytes(n) {
  return scaled(n, BYTE_UNITS, 'B');
}

/** @param {number} n @returns {string} all digits: "1,234,567" */
export function formatExact(n) {
  const [whole, fraction] = String(Math.round(n * 1000) / 1000).split('.');
  if (whole.includes('e')) return whole;
  return whole.replace(/\B(?=(\d{3})+$)/g, ',') + (fraction ? `.${fraction}` : '');
}

/** @param {number} value @param {EventUnit} event @returns {string} */
export function formatValue(value, event) {
  if (event.unit === 'ns') return formatTime(value);
  if (event.unit === 'bytes') return formatBytes(value);
  return event.unit ? `${formatCount(value)} ${event.unit}` : formatCount(value);
}

/** @typedef {{unit: string}} EventUnit */

/** @param {number} part @param {number} whole @returns {string} "12.34 %" */
export function formatPercent(part, whole) {
  if (!whole) return '–';
  return `${(100 * part / whole).toFixed(2)} %`;
}

/** @param {number} x @param {(x: number) => string} format @returns {string} with a sign, also of what is more */
export function formatChange(x, format) {
  const text = format(Math.abs(x));
  return x > 0 ? `+${text}` : x < 0 ? `−${text}` : text;
}

/** @param {number} n @param {string} one @param {string} [many] @returns {string} "1 sample", "2 samples" */
export function plural(n, one, many = `${one}s`) {
  return `${formatExact(n)} ${n === 1 ? one : many}`;
}
