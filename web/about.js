// SPDX-License-Identifier: GPL-2.0-or-later
//
// Facts about the recording, what its numbers mean, and the keys.
import { h } from './base.js';
import { formatAxis, formatBytes, formatExact, formatValue, plural } from './format.js';

/** @typedef {import('./types.js').App} App */
/** @typedef {import('./types.js').View} View */

/** @type {[string, string][]} */
export const KEYS = [
  ['1 … 9', 'show a tab'], ['/', 'search'], ['n, N', 'next, previous match'],
  ['Esc', 'clear the zoom, then the selection, then the search'],
  ['Enter', 'open the selected function; in a drawing: zoom to it'],
  ['Backspace', 'in the flame graph: zoom out by one frame'],
  ['f', 'focus on the selected function; in Calls: zoom to the call'],
  ['x', 'hide the selected function'], ['c', 'collapse the binary of the selected function'],
  ['r', 'merge recursive calls'], ['i', 'invert the flame graph and the call tree'],
  ['t', 'change the theme'], ['?', 'show the keys'],
  ['← → ↑ ↓', 'move in a table, a tree or a drawing'], ['w, s', 'zoom in, out in a drawing'],
  ['a, d', 'move to the left, right in a drawing'], ['0', 'show all of a drawing'],
  ['m', 'show the menu of a frame; in Calls: measure'],
  ['[, ]', 'in Calls: previous, next call of the function'],
  ['e', 'in the call tree: expand the heaviest path'],
];

/** @returns {HTMLElement} */
export function keyList() {
  return h('dl', { class: 'keys' }, ...KEYS.flatMap(([keys, text]) =>
    [h('dt', null, ...keys.split(/(, | … | )/).map((part) =>
    /^(, | … | )$/.test(part) ? part : h('kbd', null, part))), h('dd', null, text)]));
}

/** @param {App} app @returns {View} */
export function createAbout(app) {
  const element = h('section', { class: 'view scroll' });
  return { id: 'about', label: 'About', element, update: (changed) => {
    if (changed.size > 3 || !element.firstChild)
      element.replaceChildren(h('div', { class: 'page' }, ...aboutParts(app)));
  } };
}

/** @param {App} app @returns {(HTMLElement | null)[]} */
function aboutParts({ data }) {
  const { head } = data;
  const losses = lossesOf(head);
  return [
    h('h2', null, head.title || 'Recording'),
    factList([...head.facts, ['length', formatAxis(head.length, head.axis)]]),
    losses.length ? h('div', { class: 'warning', role: 'note' }, h('h3', null, 'Losses'),
      h('ul', null, losses.map((x) => h('li', null, x)))) : null,
    h('h3', null, 'Events'),
    h('table', { class: 'plain' }, h('thead', null,
      h('tr', null, ...['Event', data.rows.length ? 'Calls' : 'Samples', 'Sum', 'Numbers are'].map((x, i) =>
        h('th', { class: i === 1 || i === 2 ? 'number' : null }, x)))),
      h('tbody', null, ...head.events.map((event) => h('tr', null, h('td', null, event.name),
        h('td', { class: 'number' }, formatExact(event.samples)),
          h('td', { class: 'number' }, formatValue(event.weight, event)),
        h('td', null, event.weighs ? unitText(event.unit) : 'numbers of samples'))))),
    h('h3', null, 'What the numbers mean'),
    h('ul', { class: 'prose' }, ...meaningOf(data).map((text) => h('li', null, text))),
    h('h3', null, 'Keys'), keyList(),
  ];
}

/** @param {[string, string][]} facts */
function factList(facts) {
  return h('dl', { class: 'facts' }, ...facts.flatMap(([key, value]) =>
    [h('dt', null, key), h('dd', null, value)]));
}

/** @param {string} unit */
function unitText(unit) {
  return unit === 'ns' ? 'times' : unit === 'bytes' ? 'bytes (KiB: 1024)' : unit || 'weights';
}

/** @param {import('./types.js').Head} head @returns {string[]} */
function lossesOf({ lost }) {
  const texts = [];
  if (lost?.samples) texts.push(
    `${plural(lost.samples, 'sample was', 'samples were')} lost while recording.`);
  if (lost?.bytes) texts.push(
    `${formatBytes(lost.bytes)} of the data ${lost.bytes === 1 ? 'is' : 'are'} lost.`);
  if (lost?.places) texts.push(`The data is damaged at ${plural(lost.places, 'place')}${
    lost.damaged ? `, where ${plural(lost.damaged, 'sample is', 'samples are')} lost` : ''}.`);
  return texts;
}

/** @param {import('./types.js').Dataset} data @returns {string[]} */
function meaningOf({ head, rows, before, blocks }) {
  const span = (/** @type {number} */ x) =>
    formatAxis(x, head.axis, 0.001).replace(/(\.\d*?)0+ /, '$1 ').replace('. ', ' ');
  return [
    'Self is what ran in a function itself, total is with what it called. Recursion counts once.',
    'Percentages are of what is selected: event, time, CPU, task, and no hidden functions.',
    'k, M and G are 1000, 1000² and 1000³; KiB, MiB and GiB are 1024, 1024² and 1024³ bytes.',
    !head.timed ? 'The samples have no times. Therefore, there is no timeline.'
      : head.axis !== 'ns' ? `The time axis has ${head.axis} rather than seconds.` : '',
    head.quantum && head.timed
      ? `Samples are summed up over ${span(head.quantum)}: times are not more precise.` : '',
    rows.length ? 'Calls that are only partly in the selected time count by that part.' : '',
    head.shorter
      ? `“Calls” leaves out ${plural(head.shorter, 'call')} of less than ${span(head.shortest)}.` : '',
    before ? 'Red and + are what got slower, blue and − what got faster.' : '',
    before ? 'The selected time is of the new recording only.' : '',
    'The inverted tree leaves out callers of less than 1/2000 of the total.',
    blocks.has('code') ? '' : 'For source and instructions, give --build-dir or --symfs to kscope.',
  ].filter(Boolean);
}
