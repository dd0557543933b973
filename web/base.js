// SPDX-License-Identifier: GPL-2.0-or-later
//
// Elements of the page, and small helpers.

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, any>} Attributes */

/**
 * Makes an element. Attributes: `on...` functions listen, `dataset` and `style` are objects;
 *   null and false are
 * left out. Children that are no nodes become text, never HTML: names in profiles are not trusted.
 *
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes | null} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2).toLowerCase(), value);
    else if (name === 'dataset') Object.assign(element.dataset, value);
    else if (name === 'style') setStyle(element, value);
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...childNodes(children));
  return element;
}

/** @param {HTMLElement} element @param {Record<string, string>} style @returns {void} */
export function setStyle(element, style) {
  for (const [name, value] of Object.entries(style))
    if (name.startsWith('--')) element.style.setProperty(name, value);
    else /** @type {any} */ (element.style)[name] = value;
}

/** @param {(Child | Child[])[]} children @returns {(Node | string)[]} */
function childNodes(children) {
  const nodes = [];
  for (const child of children.flat())
    if (child !== null && child !== undefined && child !== false)
      nodes.push(child instanceof Node ? child : String(child));
  return nodes;
}

/** @param {number} x @param {number} low @param {number} high */
export function clamp(x, low, high) {
  return x < low ? low : x > high ? high : x;
}

/**
 * @param {ArrayLike<number>} array in ascending order
 * @param {number} value
 * @returns {number} the first index whose element is not smaller
 */
export function binarySearch(array, value) {
  let low = 0;
  let high = array.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (array[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Calls fn at most once in a frame, with the latest arguments.
 *
 * @template {any[]} A
 * @param {(...args: A) => void} fn
 * @returns {(...args: A) => void}
 */
export function debounceFrame(fn) {
  /** @type {A | null} */
  let latest = null;
  return (...args) => {
    if (!latest) requestAnimationFrame(() => {
      const now = /** @type {A} */ (latest);
      latest = null;
      fn(...now);
    });
    latest = args;
  };
}

/**
 * @param {Child} text
 * @param {string} title
 * @param {() => void} action
 * @param {Attributes} [attributes]
 */
export function button(text, title, action, attributes = {}) {
  return h('button', { type: 'button', title, onclick: action, ...attributes }, text);
}

/**
 * @typedef {{id: string, label: string, title?: string, class?: string, sort?: 'ascending' |
 *   'descending' | 'none'}} Column
 */
/** @typedef {{cells: (Child | Child[])[], class?: string, attributes?: Attributes}} TableRow */
/**
 * @typedef {object} TableOptions
 * @property {string} label
 * @property {'grid' | 'treegrid'} [role]
 * @property {(index: number) => TableRow} row
 * @property {(column: string) => void} [onSort]
 * @property {(index: number) => void} [onActive]
 * @property {(index: number) => void} [onOpen]
 * @property {(event: KeyboardEvent, index: number) => boolean} [onKey] returns whether it
 *   handled the key
 * @property {(index: number, target: Element) => boolean} [onClick] before onActive, likewise
 */

let tables = 0;

/** A table that makes only the rows which are visible. */
export class VirtualTable {
  /** @param {TableOptions} options */
  constructor(options) {
    this.options = options;
    this.id = `table${++tables}`;
    this.count = 0;
    this.active = -1;
    /** @type {Column[]} */
    this.columns = [];
    this.columnsText = '';
    this.head = h('div', { class: 'row head', role: 'row', 'aria-rowindex': 1 });
    this.body = h('div', { class: 'body', role: 'rowgroup' });
    this.element = h('div', { class: 'table', role: options.role ?? 'grid', tabindex: 0,
      'aria-label': options.label,
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event) }, this.head, this.body);
    const draw = debounceFrame(() => this.draw());
    this.element.addEventListener('scroll', draw, { passive: true });
    this.body.addEventListener('click', (event) => this.#click(event));
    new ResizeObserver(draw).observe(this.element);
  }

  /** @param {Column[]} columns */
  setColumns(columns) {
    const text = JSON.stringify(columns);
    if (text === this.columnsText) return;
    this.columnsText = text;
    this.columns = columns;
    this.element.setAttribute('aria-colcount', String(columns.length));
    // The focus stays on the header whose button was pressed.
    const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.column;
    this.head.replaceChildren(...columns.map(({ id, label, title, sort, class: name }) => h('span',
      { class: `cell ${name ?? ''}`, role: 'columnheader', 'aria-sort': sort, title },
      sort ? button(label, title ?? `Sort by ${label.toLowerCase()}`,
        () => this.options.onSort?.(id), { dataset: { column: id } })
        : label)));
    if (focused) /** @type {HTMLElement | null} */ (
      this.head.querySelector(`[data-column="${focused}"]`))?.focus();
  }

  /** @param {number} count @param {number} active the row that is active; -1: none */
  setRows(count, active) {
    this.count = count;
    this.active = active;
    this.element.setAttribute('aria-rowcount', String(count + 1));
    this.draw();
  }

  get rowHeight() {
    return parseFloat(getComputedStyle(this.element).getPropertyValue('--row')) || 22;
  }

  draw() {
    const height = this.rowHeight;
    const { scrollTop, clientHeight } = this.element;
    const first = clamp(Math.floor(scrollTop / height) - 8, 0, Math.max(0, this.count - 1));
    const last = Math.min(this.count, first + Math.ceil(clientHeight / height) + 16);
    this.body.style.height = `${this.count * height}px`;
    const rows = [];
    for (let i = first; i < last; i++) rows.push(this.#row(i, height));
    this.body.replaceChildren(...rows);
    if (this.active >= first && this.active < last)
      this.element.setAttribute('aria-activedescendant', `${this.id}-${this.active}`);
    else this.element.removeAttribute('aria-activedescendant');
  }

  /** @param {number} i @param {number} height */
  #row(i, height) {
    const { cells, class: name, attributes } = this.options.row(i);
    const classes = ['row', i % 2 && 'odd', i === this.active && 'active', name].filter(Boolean);
    return h('div', { class: classes.join(' '), role: 'row',
      id: `${this.id}-${i}`, 'aria-rowindex': i + 2, 'aria-selected': i === this.active,
        dataset: { index: i },
      style: { top: `${i * height}px` }, ...attributes },
    cells.map((cell, at) =>
      h('span', { class: `cell ${this.columns[at]?.class ?? ''}`, role: 'gridcell' },
      ...(Array.isArray(cell) ? cell : [cell]))));
  }

  /** @param {number} index */
  scrollTo(index) {
    const height = this.rowHeight;
    const { element } = this;
    const visible = element.clientHeight - this.head.offsetHeight;
    const top = index * height;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + height > element.scrollTop + visible) element.scrollTop = top + height - visible;
  }

  /** @param {number} index */
  activate(index) {
    if (!this.count) return;
    this.active = clamp(index, 0, this.count - 1);
    this.scrollTo(this.active);
    this.draw();
    this.options.onActive?.(this.active);
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const target = /** @type {Element} */ (event.target);
    const row = /** @type {HTMLElement | null} */ (target.closest('.row'));
    if (!row) return;
    const index = Number(row.dataset.index);
    if (this.options.onClick?.(index, target)) return;
    this.activate(index);
    if (event.detail === 2) this.options.onOpen?.(index);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target !== this.element) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.rowHeight) - 2);
    /** @type {Record<string, number>} */
    const moves = { ArrowDown: this.active + 1, ArrowUp: this.active - 1,
      PageDown: this.active + page,
      PageUp: this.active - page, Home: 0, End: this.count - 1 };
    if (this.options.onKey?.(event, this.active)) event.preventDefault();
    else if (event.key in moves) this.activate(moves[event.key]);
    else if (event.key === 'Enter' && this.active >= 0) this.options.onOpen?.(this.active);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
