// SPDX-License-Identifier: GPL-2.0-or-later
//
// Puts the views together: the page's header, tabs, keys and history.
import { button, clamp, debounceFrame, h } from './base.js';
import { loadData } from './data.js';
import { choiceToHash, defaultChoice, functionName, hashToChoice, sameValue, taskName, wholeQuanta } from './state.js';
import { formatAxis, formatPercent, plural } from './format.js';
import { createSums, forgetSums, matchSums } from './sums.js';
import { onSystemTheme } from './colours.js';
import { readSizes } from './canvas.js';
import { createTimeline } from './timeline.js';
import { createFlame } from './flame.js';
import { createChart } from './chart.js';
import { createSlices } from './slices.js';
import { baseName, createFunctions, eventOf, functionCommands, valueText } from './functions.js';
import { createCallTree } from './calltree.js';
import { createFunction } from './function.js';
import { createMemory } from './memory.js';
import { createAbout, keyList } from './about.js';
import { follow } from './live.js';

/** @typedef {import('./types.js').App} App */
/** @typedef {import('./types.js').Choice} Choice */
/** @typedef {import('./types.js').Dataset} Dataset */
/** @typedef {import('./types.js').View} View */
/** @typedef {{id: string, label: string, create: (app: App) => View, block?: 'slices' | 'allocs'
 *   | 'code',
 *   needs?: boolean}} Tab needs: it is there only if the page has the block */
/**
 * @typedef {{tab: Tab, button: HTMLButtonElement, panel: HTMLElement, view: View | null,
 *   changed: Set<string>}} Part
 */

/** @type {Tab[]} */
const TABS = [
  { id: 'flame', label: 'Flame graph', create: createFlame },
  { id: 'chart', label: 'Time order', create: createChart },
  { id: 'slices', label: 'Calls', create: createSlices, block: 'slices', needs: true },
  { id: 'calltree', label: 'Call tree', create: createCallTree },
  { id: 'functions', label: 'Functions', create: createFunctions },
  { id: 'function', label: 'Function', create: createFunction, block: 'code' },
  { id: 'memory', label: 'Memory', create: createMemory, block: 'allocs', needs: true },
  { id: 'about', label: 'About', create: createAbout },
];

/** @type {Choice['theme'][]} */
const THEMES = ['auto', 'light', 'dark'];
const STALE_AFTER = ['tab', 'event', 'range', 'search'];
const SAVE_DELAY = 250; // ms: browsers limit how often a page may change its URL

/** @param {unknown} error @returns {string} */
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/** @param {string} text @param {unknown} error */
function failure(text, error) {
  return h('div', { class: 'warning', role: 'alert' }, h('h2', null, text),
    h('p', null, messageOf(error)));
}

class Page {
  /** @param {Dataset} data */
  constructor(data) {
    /** @type {Part[]} */
    this.parts = [];
    this.timelineChanged = allKeys(data);
    this.saved = '';
    this.saveTimer = 0;
    /** @type {View | null} */
    this.timeline = null;
    /** @type {App} */
    this.app = /** @type {any} */ ({ data, choice: hashToChoice(location.hash, data),
      choose: (/** @type {Partial<Choice>} */ patch, replace = false) =>
        this.#choose(patch, replace),
      say: (/** @type {string} */ text) => { this.status.textContent = text; },
      tip: (/** @type {number} */ x, /** @type {number} */ y, /** @type {any} */ lines) =>
        this.#tip(x, y, lines) });
    Object.assign(this.app, createSums(this.app));
    this.schedule = debounceFrame(() => this.update());
    this.tipBox = h('div', { class: 'tip', role: 'tooltip', hidden: true });
    this.status = h('span', { class: 'status', role: 'status' });
    this.summary = h('span', { class: 'summary' });
    this.title = h('h1');
    this.events = h('select', { 'aria-label': 'Event',
      onchange: () => this.app.choose({ event: Number(this.events.value), zoom: [] }) });
    this.search = h('input', { type: 'search', placeholder: 'Search functions',
      'aria-label': 'Search functions: text or a regular expression',
      spellcheck: 'false', autocomplete: 'off', title: 'Text or a regular expression (/)',
      oninput: () => this.app.choose({ search: this.search.value }, true),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#searchKey(event) });
    this.matches = h('span', { class: 'matches', 'aria-live': 'polite' });
    this.theme = button('', 'Change the theme (t)', () => this.#nextTheme());
    this.chips = h('nav', { class: 'chips', 'aria-label': 'Selection' });
    this.tabs = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Views',
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#tabKey(event) });
    this.panels = h('main');
    this.timelineBox = h('div', { class: 'timeline-box' });
    this.splitter = h('div', { class: 'splitter', role: 'separator', tabindex: 0,
      'aria-orientation': 'horizontal',
      'aria-label': 'Height of the timeline', title: 'Drag to change the height of the timeline' });
    this.help = h('dialog', { class: 'help', 'aria-label': 'Keys' }, h('h2', null, 'Keys'),
      keyList(),
      h('form', { method: 'dialog' }, h('button', null, 'Close')));
    this.element = h('div', { class: 'app' },
      h('header', { class: 'top' }, this.title, this.events,
        h('div', { class: 'search', role: 'search' }, this.search, this.matches,
        button('↑', 'Previous match (N)', () => this.#find(-1)),
          button('↓', 'Next match (n)', () => this.#find(1))),
      h('span', { class: 'fill' }), this.theme,
        button('?', 'Show the keys (?)', () => this.help.showModal())),
      this.timelineBox, this.splitter, h('div', { class: 'tab-row' }, this.tabs, this.chips),
        this.panels,
      h('footer', null, this.status, this.summary), this.tipBox, this.help);
    this.#listen();
    this.setData(data);
  }

  #listen() {
    addEventListener('popstate', () => this.#restore());
    addEventListener('hashchange', () => this.#restore());
    document.addEventListener('keydown', (event) => this.#key(event));
    this.splitter.addEventListener('pointerdown',
      (event) => this.splitter.setPointerCapture(event.pointerId));
    this.splitter.addEventListener('pointermove', (event) => {
      if (this.splitter.hasPointerCapture(event.pointerId))
        this.#resizeTimeline(event.clientY - this.timelineBox.getBoundingClientRect().top);
    });
    this.splitter.addEventListener('keydown', (event) => {
      const by = { ArrowUp: -16, ArrowDown: 16 }[event.key];
      if (!by) return;
      event.preventDefault();
      this.#resizeTimeline(this.timelineBox.offsetHeight + by);
    });
    onSystemTheme(() => this.#redraw('theme'));
    readSizes();
    addEventListener('resize', () => { if (readSizes()) this.#redraw('sizes'); });
    // Paper is white.
    addEventListener('beforeprint', () => this.#showTheme('light'));
    addEventListener('afterprint', () => this.#showTheme(this.app.choice.theme));
  }

  /** @param {Dataset} data new data of the same recording, or the first */
  setData(data) {
    const { app } = this;
    // Functions may have other numbers now; names in the hash stay the same.
    if (data !== app.data)
      Object.assign(app.choice, hashToChoice(choiceToHash(app.choice, app.data), data));
    app.data = data;
    forgetSums(app);
    this.title.textContent = data.head.title || 'kscope';
    this.title.title = this.title.textContent;
    document.title = `${this.title.textContent} - kscope`;
    this.events.replaceChildren(...data.head.events.map(({ name }, i) =>
      h('option', { value: i }, name)));
    this.events.hidden = !data.head.events.length;
    this.events.disabled = data.head.events.length < 2;
    this.timelineBox.classList.toggle('none', !data.head.timed);
    this.splitter.hidden = !data.head.timed;
    this.#makeTabs();
    this.#redraw(...allKeys(data));
    this.#showTheme(app.choice.theme);
  }

  #makeTabs() {
    const { data } = this.app;
    const had = new Map(this.parts.map((part) => [part.tab.id, part]));
    this.parts = TABS.filter(({ needs, block }) =>
      !needs || data.blocks.has(/** @type {string} */ (block)))
      .map((tab) => had.get(tab.id) ?? this.#makePart(tab));
    this.tabs.replaceChildren(...this.parts.map((part) => part.button));
    this.panels.replaceChildren(...this.parts.map((part) => part.panel));
    for (const part of this.parts) if (part.tab.block && part.view) this.#load(part);
  }

  /** @param {Tab} tab @returns {Part} */
  #makePart(tab) {
    const { id, label } = tab;
    const number = TABS.filter(({ needs, block }) =>
      !needs || this.app.data.blocks.has(/** @type {string} */ (block))).indexOf(tab) + 1;
    return { tab, view: null, changed: allKeys(this.app.data),
      button: h('button', { type: 'button', role: 'tab', id: `tab-${id}`,
        'aria-controls': `panel-${id}`, title: `${label} (${number})`,
        onclick: () => this.app.choose({ tab: id }) }, label),
      panel: h('div', { class: 'panel-box', role: 'tabpanel', id: `panel-${id}`,
        'aria-labelledby': `tab-${id}`, hidden: true }) };
  }

  get part() {
    return this.parts.find(({ tab }) => tab.id === this.app.choice.tab) ?? this.parts[0];
  }

  /** Loads the block that a tab needs. @param {Part} part */
  async #load(part) {
    const { data } = this.app;
    const { block } = part.tab;
    if (!block || !data.blocks.has(block) || data[block]) return;
    try {
      await data.load(block);
      part.changed = allKeys(data);
      this.schedule();
    } catch (error) {
      part.panel.replaceChildren(failure('This view cannot be shown', error));
    }
  }

  /** Updates what is visible. */
  update() {
    const { app } = this;
    const { part } = this;
    for (const one of this.parts) {
      const on = one === part;
      one.panel.hidden = !on;
      one.button.setAttribute('aria-selected', String(on));
      one.button.tabIndex = on ? 0 : -1;
    }
    this.#updateTop();
    if (this.timelineChanged.size) {
      const changed = this.timelineChanged;
      this.timelineChanged = new Set();
      this.#guard(this.timelineBox, () => {
        this.timeline ??= this.#add(this.timelineBox, createTimeline(app));
        this.timeline.update(changed);
      });
    }
    this.#updatePart(part);
  }

  /** @param {Part} part */
  #updatePart(part) {
    const { data } = this.app;
    const { needs, block, create } = part.tab;
    if (block && !part.view) this.#load(part);
    if (needs && block && !data[block]) {
      part.panel.replaceChildren(h('p', { class: 'note' }, 'Loading…'));
      return;
    }
    if (!part.changed.size) return;
    const { changed } = part;
    part.changed = new Set();
    this.#guard(part.panel, () => {
      part.view ??= this.#add(part.panel, create(this.app));
      part.view.update(changed);
    });
  }

  /** @param {HTMLElement} box @param {View} view @returns {View} */
  #add(box, view) {
    box.replaceChildren(view.element);
    return view;
  }

  /**
   * An error in one view must not end the others.
   *
   * @param {HTMLElement} box
   * @param {() => void} run
   */
  #guard(box, run) {
    try {
      run();
    } catch (error) {
      console.error(error);
      box.replaceChildren(failure('This view cannot be shown', error));
    }
  }

  #updateTop() {
    const { app } = this;
    const [all] = app.tree().total;
    this.events.value = String(app.choice.event);
    if (document.activeElement !== this.search) this.search.value = app.choice.search;
    const found = app.choice.search ? matchSums(app) : null;
    this.matches.textContent = found
      ? `${plural(found.functions, 'function')}, ${formatPercent(found.total, all)}` : '';
    this.theme.textContent = { auto: '◐ auto', light: '☀ light', dark: '☾ dark' }[app.choice.theme];
    const event = eventOf(app);
    const whole = event.weighs ? event.weight : event.samples;
    const sum = event.weighs ? valueText(app, all) : plural(all, 'sample');
    this.summary.textContent = all === whole ? sum : `${sum}, ${formatPercent(all, whole)} of all`;
    this.chips.replaceChildren(...this.#chips());
    this.chips.hidden = !this.chips.firstChild;
  }

  /** @returns {HTMLElement[]} what is selected, each of which can be removed */
  #chips() {
    const { app } = this;
    const { data, choice } = app;
    const { axis } = data.head;
    /** @type {(kind: string, name: string, patch: Partial<Choice>) => HTMLElement} */
    const chip = (kind, name, patch) =>
      h('button', { type: 'button', class: 'chip', title: `Remove: ${kind} ${name}`,
        'aria-label': `Remove: ${kind} ${name}`,
        onclick: () => app.choose({ ...patch, zoom: [] }) }, h('small', null, kind), ` ${name} `,
          h('span', { 'aria-hidden': 'true' }, '×'));
    const without = (/** @type {number[]} */ list, /** @type {number} */ x) =>
      list.filter((y) => y !== x);
    const chips = [];
    if (choice.range) {
      const [begin, end] = choice.range;
      chips.push(chip('time',
        `${formatAxis(begin, axis)} – ${formatAxis(end, axis)} (${formatAxis(end - begin, axis)})`,
        { range: null }));
    }
    if (choice.cpu !== null)
      chips.push(chip('CPU', choice.cpu ? String(choice.cpu - 1) : 'unknown', { cpu: null }));
    if (choice.task !== null) chips.push(chip('task', taskName(data, choice.task), { task: null }));
    if (choice.focus !== null)
      chips.push(chip('focus', functionName(data, choice.focus), { focus: null }));
    for (const fn of choice.hidden)
      chips.push(chip('hidden', functionName(data, fn), { hidden: without(choice.hidden, fn) }));
    for (const binary of choice.collapsed)
      chips.push(chip('collapsed', baseName(data.strings[binary]),
        { collapsed: without(choice.collapsed, binary) }));
    if (choice.recursion) chips.push(chip('recursion', 'merged', { recursion: false }));
    return chips;
  }

  /** @param {Partial<Choice>} patch @param {boolean} replace */
  #choose(patch, replace) {
    const { choice, data } = this.app;
    if (patch.range) patch = { ...patch, range: wholeQuanta(patch.range, data.head) };
    const changed = Object.keys(patch).filter((key) =>
      !sameValue(/** @type {any} */ (choice)[key], /** @type {any} */ (patch)[key]));
    if (!changed.length) return;
    Object.assign(choice, patch);
    this.#save(replace);
    if (changed.includes('theme')) this.#showTheme(choice.theme);
    this.#redraw(...changed);
  }

  /** @param {...string} keys that changed */
  #redraw(...keys) {
    // The status line is about what was visible before.
    if (keys.some((key) => STALE_AFTER.includes(key))) this.status.textContent = '';
    for (const key of keys) {
      this.timelineChanged.add(key);
      for (const part of this.parts) part.changed.add(key);
    }
    this.schedule();
  }

  /** @param {boolean} replace */
  #save(replace) {
    clearTimeout(this.saveTimer);
    if (replace) {
      this.saveTimer = setTimeout(() => this.#write('replaceState'), SAVE_DELAY);
      return;
    }
    this.#write('pushState');
  }

  /** @param {'pushState' | 'replaceState'} how */
  #write(how) {
    const hash = `#${choiceToHash(this.app.choice, this.app.data)}`;
    if (hash === this.saved) return;
    this.saved = hash;
    try {
      history[how](null, '', hash);
    } catch {
      // In some frames a page must not change its URL; links are all that is missing then.
    }
  }

  #restore() {
    const { app } = this;
    // An older change must not overwrite what is now in the history.
    clearTimeout(this.saveTimer);
    const choice = hashToChoice(location.hash, app.data);
    this.saved = location.hash;
    const changed = Object.keys(choice).filter((key) =>
      !sameValue(/** @type {any} */ (choice)[key], /** @type {any} */ (app.choice)[key]));
    Object.assign(app.choice, choice);
    this.#showTheme(choice.theme);
    this.#redraw(...changed);
  }

  #nextTheme() {
    const { theme } = this.app.choice;
    this.app.choose({ theme: THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] }, true);
  }

  /** @param {Choice['theme']} theme */
  #showTheme(theme) {
    if (document.documentElement.dataset.theme === theme) return;
    document.documentElement.dataset.theme = theme;
    this.#redraw('theme');
    // The print comes before the next frame.
    if (theme !== this.app.choice.theme) this.update();
  }

  /** @param {number} height */
  #resizeTimeline(height) {
    this.element.style.setProperty('--timeline', `${clamp(height, 40, innerHeight - 200)}px`);
  }

  /** @param {1 | -1} direction */
  #find(direction) {
    if (!this.app.choice.search) this.search.focus();
    else if (this.part.view?.find) this.part.view.find(direction);
    else this.app.say(`${this.part.tab.label} has no matches to go to.`);
  }

  /** @param {KeyboardEvent} event */
  #searchKey(event) {
    if (event.key === 'Enter') this.#find(event.shiftKey ? -1 : 1);
    else if (event.key !== 'Escape') return;
    else if (this.search.value) this.app.choose({ search: this.search.value = '' }, true);
    else this.search.blur();
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {KeyboardEvent} event */
  #tabKey(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    const next = this.parts[(this.parts.indexOf(this.part) + by
      + this.parts.length) % this.parts.length];
    this.app.choose({ tab: next.tab.id });
    next.button.focus();
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || this.help.open)
      return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
    // Enter and space are the button's.
    if (target.tagName === 'BUTTON' && /^(Enter| )$/.test(event.key)) return;
    if (this.part.view?.key?.(event) || this.#pageKey(event)) event.preventDefault();
  }

  /** @param {KeyboardEvent} event @returns {boolean} */
  #pageKey({ key }) {
    const { app } = this;
    const { choice } = app;
    const fn = choice.function;
    const tab = this.parts[Number(key) - 1];
    /** @type {Record<string, () => void>} */
    const keys = { '/': () => { this.search.focus(); this.search.select(); },
      n: () => this.#find(1), N: () => this.#find(-1),
      '?': () => this.help.showModal(), t: () => this.#nextTheme(), Escape: () => this.#clear(),
      i: () => app.choose({ inverted: !choice.inverted, zoom: [] }),
        r: () => app.choose({ recursion: !choice.recursion, zoom: [] }) };
    const commands = { f: 'focus', x: 'hide', c: 'collapse', Enter: 'open' };
    const command = /** @type {Record<string, string>} */ (commands)[key];
    if (tab) app.choose({ tab: tab.tab.id });
    else if (Object.hasOwn(keys, key)) keys[key]();
    else if (command && fn !== null) functionCommands[command](app, fn);
    else return false;
    return true;
  }

  #clear() {
    const { app } = this;
    const { zoom, range, cpu, task, search } = app.choice;
    if (zoom.length) app.choose({ zoom: [] });
    else if (range || cpu !== null || task !== null || app.choice.function !== null)
      app.choose({ range: null, cpu: null, task: null, function: null });
    else if (search) app.choose({ search: '' });
  }

  /** @param {number} x @param {number} y @param {(string | [string, string])[] | null} lines */
  #tip(x, y, lines) {
    this.tipBox.hidden = !lines;
    if (!lines) return;
    this.tipBox.replaceChildren(...lines.map((line) => typeof line === 'string'
      ? h('div', null, line)
      : h('div', { class: 'pair' }, h('span', null, line[0]), h('span', null, line[1]))));
    const { offsetWidth, offsetHeight } = this.tipBox;
    // Beside the pointer, on the side that has room.
    const left = x + 14 + offsetWidth > innerWidth ? x - 14 - offsetWidth : x + 14;
    const top = y + 18 + offsetHeight > innerHeight ? y - 10 - offsetHeight : y + 18;
    this.tipBox.style.left = `${Math.max(4, left)}px`;
    this.tipBox.style.top = `${Math.max(4, top)}px`;
  }
}

/** @param {Dataset} data @returns {Set<string>} */
function allKeys(data) {
  return new Set([...Object.keys(defaultChoice(data)), 'data']);
}

/** @param {Document} document @returns {Promise<Page | null>} */
export async function start(document) {
  const loading = h('p', { class: 'loading' }, 'Loading…');
  document.body.append(loading);
  try {
    const page = new Page(await loadData(document));
    loading.replaceWith(page.element);
    page.update();
    // For tests, measurements and the console.
    Object.assign(globalThis, { kscopePage: page });
    requestAnimationFrame(() => setTimeout(() => performance.mark('kscope-ready')));
    return page;
  } catch (error) {
    console.error(error);
    loading.replaceWith(failure('This report cannot be shown', error));
    return null;
  }
}

start(document).then((page) => page && follow(page));
