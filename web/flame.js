// SPDX-License-Identifier: GPL-2.0-or-later
//
// The flame graph.
import { h, button, clamp } from './base.js';
import { formatChange, formatExact, formatPercent, formatValue, plural } from './format.js';
import { binaryName, functionName } from './state.js';
import { matchSums } from './sums.js';
import { binaryColour, compareColour, textColour, themeColours } from './colours.js';
import { ROW, createScene, createViewport, createPalette, addGestures, viewportKey, isForOthers, listenKeys, openMenu, outline, segments, copyText } from './canvas.js';

/** @typedef {import('./types.js').App} App */
/** @typedef {import('./types.js').Tree} Tree */
/** @typedef {import('./types.js').View} View */
/** @typedef {import('./types.js').Choice} Choice */
/** @typedef {import('./canvas.js').Scene} Scene */

/**
 * Where frames are. They are placed when they are first asked for: most frames of a large tree never are. `kids` has
 * the children of a node from left to right.
 *
 * @typedef {{x: number, depth: number, kids: number[] | null}} Place
 * @typedef {{tree: Tree, size: Float64Array, deepest: number, place: (node: number) => Place,
 *   kids: (node: number) => number[]}} Layout
 */

const THINNEST = 0.3; // px
const WITH_TEXT = 22;

/** @param {App} app @returns {View} */
export function createFlame(app) {
  /** @type {Layout | null} */
  let layout = null;
  let zoomed = 0;
  let cursor = 0;
  let hovered = -1;
  let ofBefore = false; // whether widths are those of the old recording
  let orderOf = '';
  /** @type {number[]} */
  let ranks = [];
  let data = app.data;

  const view = createViewport(() => scene.redraw());
  const scene = createScene({ label: 'Flame graph. Arrow keys walk, Enter zooms, '
    + 'Backspace zooms out, m opens a menu.', draw, className: 'flame' });
  const palette = createPalette(app);
  const crumbs = h('nav', { class: 'crumbs', 'aria-label': 'Zoomed frames' });
  const found = h('span', { class: 'drawing-found' });
  const focused = h('p', { class: 'drawing-status', 'aria-live': 'polite' });
  const toolbar = createToolbar();
  const element = h('div', { class: 'drawing-view' }, toolbar.element, crumbs, scene.element,
    focused);

  addGestures(scene, view, { click, hover,
    double: (_x, _y, event) => { event.preventDefault(); showFunction(cursor); },
    menu: (x, y, event) => { pick(nodeAt(x, y)); menu(event.clientX, event.clientY); } });
  listenKeys(scene, key);

  function createToolbar() {
    const direction = segments('Direction', [['flame', 'Flame', 'The root is at the bottom'],
      ['icicle', 'Icicle', 'The root is at the top']], (value) => app.choose({ direction: value }));
    const inverted = segments('Root', [[false, 'Callers first'],
      [true, 'Inverted', 'The innermost function is the root']],
      (value) => app.choose({ inverted: value, zoom: [] }));
    const order = segments('Order', [['name', 'By name'], ['heavy', 'Heaviest first']],
      (value) => app.choose({ order: value }));
    const colours = segments('Colours', [['binary', 'Binaries'], ['category', 'Categories'],
      ['name', 'Names']],
      (value) => app.choose({ colours: value }));
    const recursion = button('Merge recursion', 'A function that calls itself is one frame',
      () => app.choose({ recursion: !app.choice.recursion }));
    const widths = segments('Widths', [[false, 'New widths'], [true, 'Old widths']], (value) => {
      ofBefore = value;
      layout = null;
      update(new Set());
    });
    const all = button('Zoom out', 'Show all frames (Escape)', () => zoomTo(0));
    const parts = [direction, inverted, order].map(({ element: one }) => one);
    return { element: h('div', { class: 'drawing-bar' }, parts, recursion,
      app.data.before ? widths.element
      : [h('span', { class: 'drawing-muted' }, 'Colours'), colours.element],
        h('span', { class: 'drawing-fill' }), found, all),
    show: (/** @type {Choice} */ choice) => {
      direction.show(choice.direction);
      inverted.show(choice.inverted);
      order.show(choice.order);
      colours.show(choice.colours);
      widths.show(ofBefore);
      recursion.setAttribute('aria-pressed', String(choice.recursion));
    } };
  }

  // Frames

  /** @param {number} node */
  function nameOf(node) {
    if (!layout || !node) return 'All';
    const { binary, function: fn } = layout.tree;
    return binary[node] ? app.data.strings[binary[node]] : functionName(app.data, fn[node]);
  }

  /** @param {number} node @returns {number} its function; -1: none */
  const functionOf = (node) => layout && node > 0 ? layout.tree.function[node] : -1;

  /** @param {number} node */
  function pathOf(node) {
    const path = [];
    for (; node && layout; node = layout.tree.parent[node]) path.push(functionOf(node));
    return path.reverse();
  }

  /** @param {number[]} path @returns {number} the last node of it that there is */
  function follow(path) {
    let node = 0;
    if (!layout) return 0;
    const { kids, tree } = layout;
    for (const fn of path) {
      const next = kids(node).find((kid) => tree.function[kid] === fn);
      if (!next) break;
      node = next;
    }
    return node;
  }

  const isFlame = () => app.choice.direction === 'flame';

  /** @param {number} depth @returns {number} */
  function rowAt(depth) {
    if (!isFlame()) return depth * ROW - scene.scroll();
    const content = Math.max(((layout?.deepest ?? 0) + 1) * ROW, scene.height);
    return content - (depth + 1) * ROW - scene.scroll();
  }

  /** @param {number} x @param {number} y @returns {number} -1: none */
  function nodeAt(x, y) {
    if (!layout) return -1;
    const depth = isFlame() ? Math.floor((rowAt(0) + ROW - y) / ROW)
      : Math.floor((y + scene.scroll()) / ROW);
    const at = view.at(x, scene.width);
    const { kids, place, size } = layout;
    let node = depth < 0 ? -1 : 0;
    for (let i = 0; i < depth && node >= 0; i++)
      node = kids(node).find((kid) => at >= place(kid).x && at < place(kid).x + size[kid]) ?? -1;
    return node;
  }

  // Drawing

  function draw() {
    if (!layout) return;
    const { context, width, height } = scene;
    const { size, kids, place } = layout;
    const style = frameStyle();
    const scale = width / (view.to - view.from);
    /** @type {[number, number, number][]} */
    const marked = [];
    const walk = [0];
    context.textBaseline = 'middle';
    if (!size[0]) {
      context.fillStyle = style.colours.muted;
      context.fillText('There are no samples of this event here.', 12, ROW);
      return;
    }
    while (walk.length) {
      const node = /** @type {number} */ (walk.pop());
      const { x, depth } = place(node);
      const left = Math.max((x - view.from) * scale, -1);
      const right = Math.min((x + size[node] - view.from) * scale, width + 1);
      const y = rowAt(depth);
      if (y > -ROW && y < height) drawFrame(node, left, right - left, y, style, marked);
      if (isFlame() ? y <= 0 : y + ROW >= height) continue;
      for (const kid of kids(node)) {
        if (size[kid] * scale < THINNEST) continue;
        const from = place(kid).x;
        if (from >= view.to) break;
        if (from + size[kid] > view.from) walk.push(kid);
      }
    }
    // Over the frames, so that neighbours do not hide them.
    for (const [node, left, wide] of marked) drawMarks(node, left, wide, rowAt(place(node).depth), style);
  }

  function frameStyle() {
    const path = new Set([0]);
    for (let node = zoomed; node && layout; node = layout.tree.parent[node]) path.add(node);
    path.delete(zoomed);
    return { colours: themeColours(), matches: app.matches(), outside: path };
  }

  /** @param {number} node */
  function colourOf(node) {
    const { tree } = /** @type {Layout} */ (layout);
    if (tree.beforeTotal) return compareColour(...changeOf(node));
    if (!node) return themeColours().line;
    if (tree.binary[node]) return binaryColour(tree.binary[node], app);
    return palette.of(functionOf(node), tree.category[node]);
  }

  /** @param {number} node @returns {[number, number]} shares or values, before and after */
  function changeOf(node) {
    const { total, beforeTotal } = /** @type {Layout} */ (layout).tree;
    const before = beforeTotal ?? total;
    return app.choice.compare === 'absolute' ? [before[node], total[node]]
      : [before[node] / (before[0] || 1), total[node] / (total[0] || 1)];
  }

  /** @param {number} node */
  function changeText(node) {
    const [before, after] = changeOf(node);
    return app.choice.compare === 'absolute' ? formatChange(after - before, valueText)
      : `${formatChange((after - before) * 100, (x) => x.toFixed(x < 0.1 ? 2 : 1))} pp`;
  }

  /** @param {number} value */
  const valueText = (value) => formatValue(value, app.data.head.events[app.choice.event] ?? { unit: '' });

  /** @param {number} node @param {number} left @param {number} wide @param {number} y
   *  @param {ReturnType<typeof frameStyle>} style @param {[number, number, number][]} marked */
  function drawFrame(node, left, wide, y, style, marked) {
    const { context } = scene;
    const { tree } = /** @type {Layout} */ (layout);
    const colour = colourOf(node);
    const fn = functionOf(node);
    const match = style.matches !== null && fn >= 0 && !tree.binary[node]
      && style.matches[fn] !== 0;
    const faint = style.outside.has(node) || (style.matches !== null && !match);
    context.globalAlpha = faint ? 0.45 : 1;
    context.fillStyle = colour;
    context.fillRect(left, y, wide > 3 ? wide - 1 : wide, ROW - 1);
    context.globalAlpha = 1;
    if (wide >= WITH_TEXT) {
      context.fillStyle = faint ? style.colours.text : textColour(colour);
      let text = nameOf(node);
      if (!node) text += `: ${valueText(tree.total[0])}`;
      if (tree.beforeTotal && node && wide > 110) text += `  ${changeText(node)}`;
      if (tree.inlined[node]) text = `⤷ ${text}`;
      // The name stays in sight while its frame goes beyond the edge.
      scene.label(text, left + 4, y + ROW / 2, wide - 8, true);
    }
    if (match || node === cursor || node === hovered || fn === app.choice.function)
      marked.push([node, left, wide]);
  }

  /** @param {number} node @param {number} left @param {number} wide @param {number} y
   *  @param {ReturnType<typeof frameStyle>} style */
  function drawMarks(node, left, wide, y, { colours, matches }) {
    const { context } = scene;
    const fn = functionOf(node);
    if (wide < 2) {
      context.fillStyle = colours.accent;
      context.fillRect(left, y, Math.max(wide, 1), ROW - 1);
      return;
    }
    if (node === hovered) outline(context, colours.muted, left, y, wide - 1, 1);
    if (matches && fn >= 0 && matches[fn]) outline(context, colours.text, left, y, wide - 1, 1);
    if (fn >= 0 && fn === app.choice.function)
      outline(context, colours.accent, left, y, wide - 1, 2);
    if (node === cursor && document.activeElement === scene.canvas) {
      context.setLineDash([3, 2]);
      outline(context, colours.text, left, y, wide - 1, 2);
      context.setLineDash([]);
    }
  }

  // What the user does

  /** @param {number} node */
  function pick(node) {
    if (node < 0 || !layout) return;
    cursor = node;
    focused.textContent = describe(node);
    scene.redraw();
  }

  /** @param {number} node */
  function describe(node) {
    if (!layout) return '';
    const { total, self } = layout.tree;
    const all = `${valueText(total[node])} (${formatPercent(total[node], total[0])})`;
    return `${nameOf(node)}: total ${all}, self ${valueText(self[node])}`;
  }

  /** @param {number} node */
  function zoomTo(node) {
    const fn = functionOf(node);
    const isFunction = fn >= 0 && !layout?.tree.binary[node];
    if (node === zoomed) view.set(...extent(node), true);
    app.choose({ zoom: pathOf(node), ...(isFunction ? { function: fn } : {}) });
  }

  /** @param {number} node @returns {[number, number]} */
  function extent(node) {
    const { place, size } = /** @type {Layout} */ (layout);
    const { x } = place(node);
    return [x, x + size[node]];
  }

  /** @param {number} x @param {number} y @param {MouseEvent} event */
  function click(x, y, event) {
    const node = nodeAt(x, y);
    // The second click of two is about the frame that the first one moved away.
    if (node < 0 || event.detail > 1) return;
    pick(node);
    zoomTo(node);
  }

  /** @param {number} node */
  function showFunction(node) {
    const fn = functionOf(node);
    if (fn >= 0) app.choose({ function: fn, tab: 'function' });
  }

  /** @param {number} x @param {number} y @param {PointerEvent | null} event */
  function hover(x, y, event) {
    const node = event ? nodeAt(x, y) : -1;
    if (node !== hovered) scene.redraw();
    hovered = node;
    app.tip(event?.clientX ?? 0, event?.clientY ?? 0, node < 0 ? null : tipLines(node));
  }

  /** @param {number} node @returns {(string | [string, string])[]} */
  function tipLines(node) {
    const { tree } = /** @type {Layout} */ (layout);
    const fn = functionOf(node);
    /** @type {(string | [string, string])[]} */
    const lines = [nameOf(node)];
    const line = (/** @type {string} */ name, /** @type {number} */ value,
      /** @type {number} */ all) =>
      lines.push([name, `${valueText(value)} (${formatPercent(value, all)})`]);
    if (tree.inlined[node]) lines.push('inlined into its caller');
    if (fn >= 0 && binaryName(app.data, fn)) lines.push(['Binary', binaryName(app.data, fn)]);
    line('Total', tree.total[node], tree.total[0]);
    line('Self', tree.self[node], tree.total[0]);
    if (tree.beforeTotal && tree.beforeSelf) {
      line('Total before', tree.beforeTotal[node], tree.beforeTotal[0]);
      line('Self before', tree.beforeSelf[node], tree.beforeTotal[0]);
      lines.push(['Change', changeText(node)]);
    }
    if (zoomed && node !== zoomed)
      lines.push([`Of ${nameOf(zoomed)}`, formatPercent(tree.total[node], tree.total[zoomed])]);
    if (fn >= 0 && !tree.binary[node]) {
      const sums = app.sums();
      line('In all stacks', sums.total[fn], sums.all);
      lines.push([`${app.data.rows.length ? 'Calls' : 'Own samples'} in all stacks`, formatExact(sums.samples[fn])]);
    }
    return lines;
  }

  /** @param {number} x @param {number} y client coordinates */
  function menu(x, y) {
    app.tip(0, 0, null);
    const fn = functionOf(cursor);
    const binary = fn >= 0 ? app.data.functions.binary[fn] : 0;
    const { hidden, collapsed, focus } = app.choice;
    const isCollapsed = !!binary && collapsed.includes(binary);
    /** @type {import('./canvas.js').MenuItem[]} */
    const items = [
      { text: 'Zoom', key: 'Enter', run: () => zoomTo(cursor) },
      { text: 'Show this function', run: () => showFunction(cursor), off: fn < 0 },
      { text: 'Focus on function', key: 'f', run: () => transform('f'), off: fn < 0 },
      { text: 'Hide function', key: 'x', run: () => transform('x'), off: fn < 0 },
      { text: isCollapsed ? 'Expand binary' : 'Collapse binary', key: 'c',
        run: () => transform('c'), off: !binary },
      { text: 'Copy name', run: () => copyText(nameOf(cursor), app), off: fn < 0 }];
    if (focus !== null)
      items.push({ text: 'Remove the focus', run: () => app.choose({ focus: null, zoom: [] }) });
    if (hidden.length)
      items.push({ text: 'Show hidden functions', run: () => app.choose({ hidden: [] }) });
    openMenu(x, y, items, scene.canvas);
  }

  /** @param {string} how a key */
  function transform(how) {
    const fn = functionOf(cursor);
    if (fn < 0) return;
    const { hidden, collapsed } = app.choice;
    const binary = app.data.functions.binary[fn];
    if (how === 'f') app.choose({ focus: fn, zoom: [] });
    else if (how === 'x') app.choose({ hidden: [...hidden.filter((one) => one !== fn), fn] });
    else if (binary)
      app.choose({ collapsed: collapsed.includes(binary) ? collapsed.filter((one) => one !== binary)
      : [...collapsed, binary], zoom: [] });
  }

  /** @param {KeyboardEvent} event */
  function key(event) {
    if (!layout || isForOthers(event)) return false;
    const { tree } = layout;
    switch (event.key) {
      case 'ArrowUp': walkBy(isFlame() ? 'in' : 'out'); return true;
      case 'ArrowDown': walkBy(isFlame() ? 'out' : 'in'); return true;
      case 'ArrowLeft': walkBy(-1); return true;
      case 'ArrowRight': walkBy(1); return true;
      case 'Enter': zoomTo(cursor); return true;
      case 'Backspace':
        pick(tree.parent[zoomed]);
        zoomTo(tree.parent[zoomed]);
        return true;
      case 'Escape':
        if (!zoomed && view.whole()) return false;
        zoomTo(0);
        return true;
      case 'f': case 'x': case 'c':
        // Without a frame, the key is for the selected function.
        if (cursor) transform(event.key);
        return cursor > 0;
      case 'm': case 'ContextMenu': menuAtCursor(); return true;
      default: return viewportKey(event, view);
    }
  }

  function menuAtCursor() {
    const box = scene.canvas.getBoundingClientRect();
    const x = clamp(view.x(extent(cursor)[0], scene.width), 0, scene.width - 50);
    menu(box.left + x, box.top + rowAt(layout?.place(cursor).depth ?? 0) + ROW);
  }

  /** @param {'in' | 'out' | 1 | -1} where */
  function walkBy(where) {
    const { tree, kids, size, place } = /** @type {Layout} */ (layout);
    if (where === 'out') return walkTo(tree.parent[cursor]);
    if (where === 'in') {
      const of = kids(cursor);
      const largest = of.reduce((most, kid) => size[kid] > size[most] ? kid : most, of[0]);
      return of.length ? walkTo(largest) : undefined;
    }
    // The neighbour, which may have another parent.
    const [from, to] = extent(cursor);
    let node = 0;
    const at = where > 0 ? to : from;
    for (let level = 0; level < place(cursor).depth; level++) {
      const of = kids(node);
      const next = where > 0 ? of.find((kid) =>
        extent(kid)[1] > at && extent(kid)[0] >= (kid === cursor ? at : 0))
        : of.findLast((kid) => extent(kid)[0] < at);
      if (next === undefined) return undefined;
      node = next;
    }
    return node === cursor ? undefined : walkTo(node);
  }

  /** @param {number} node */
  function walkTo(node) {
    const { place } = /** @type {Layout} */ (layout);
    pick(node);
    const [from, to] = extent(node);
    const goal = view.goal();
    const wide = (to - from) / (goal.to - goal.from) * scene.width;
    if (to <= goal.from || from >= goal.to || wide < 2) {
      const margin = (to - from) * 2;
      view.set(from - margin, to + margin, true);
    }
    const y = rowAt(place(node).depth);
    if (y < 0) scene.element.scrollTop += y - ROW;
    else if (y + ROW > scene.height) scene.element.scrollTop += y + 2 * ROW - scene.height;
  }

  /**
   * Goes through the frames that match, but not through those within them.
   * @param {1 | -1} direction
   */
  function find(direction) {
    const matches = app.matches();
    if (!layout || !matches) return;
    const { tree, size } = layout;
    const inside = new Uint8Array(tree.nr);
    const nodes = [];
    for (let node = 1; node < tree.nr; node++) {
      inside[node] = inside[tree.parent[node]] || matches[tree.function[node]];
      if (inside[node] && !inside[tree.parent[node]] && size[node]) nodes.push(node);
    }
    if (!nodes.length) return;
    nodes.sort((a, b) => tree.total[b] - tree.total[a]);
    const at = nodes.indexOf(cursor);
    const next = at < 0 ? (direction > 0 ? 0 : nodes.length - 1)
      : (at + direction + nodes.length) % nodes.length;
    walkTo(nodes[next]);
    app.say(`Match ${next + 1} of ${nodes.length}: ${describe(nodes[next])}`);
  }

  // Updates

  function showCrumbs() {
    const path = pathOf(zoomed);
    const nodes = path.map((_, i) => follow(path.slice(0, i + 1)));
    const few = nodes.length > 8 ? [...nodes.slice(0, 2), -1, ...nodes.slice(-5)] : nodes;
    crumbs.hidden = !zoomed;
    crumbs.replaceChildren(button('All', 'Zoom out', () => zoomTo(0)),
      ...few.flatMap((node) => ['›', node < 0 ? '…'
      : button(nameOf(node), `Zoom to ${nameOf(node)}`, () => zoomTo(node))]));
    crumbs.lastElementChild?.setAttribute('aria-current', 'true');
  }

  function showFound() {
    if (!app.matches() || !layout) {
      found.textContent = '';
      return;
    }
    const { functions, total } = matchSums(app);
    const share = formatPercent(total, app.tree().total[0]);
    found.textContent = `Found: ${share} (${valueText(total)}) in ${plural(functions, 'function')}`;
  }

  /** @returns {string} so that names are sorted once */
  function rankNames() {
    if (data === app.data && ranks.length) return orderOf;
    data = app.data;
    const { name, nr } = data.functions;
    const names = [...new Set(name)].sort((a, b) => data.strings[a] < data.strings[b] ? -1 : 1);
    const rank = new Map(names.map((one, i) => [one, i]));
    ranks = Array.from({ length: nr }, (_, fn) => rank.get(name[fn]) ?? 0);
    return orderOf;
  }

  /** @param {Set<string>} changed */
  function update(changed) {
    const { choice } = app;
    const tree = choice.inverted ? app.inverted() : app.tree();
    const fresh = layout?.tree !== tree || orderOf !== choice.order;
    if (fresh || changed.has('theme') || changed.has('colours')) palette.forget();
    if (fresh) {
      rankNames();
      orderOf = choice.order;
      // The focused frame stays if it is still there.
      const path = pathOf(cursor);
      const below = scene.element.scrollHeight - scene.scroll();
      const first = !layout;
      layout = layOut(tree, ofBefore && tree.beforeTotal ? tree.beforeTotal : tree.total,
        choice.order === 'heavy' ? null : ranks);
      view.limit(0, layout.size[0], layout.size[0] * 1e-7);
      scene.setContent((layout.deepest + 1) * ROW);
      cursor = follow(path);
      hovered = -1;
      if (isFlame() && !first) scene.element.scrollTop = scene.element.scrollHeight - below;
    }
    if (changed.has('sizes') && layout) scene.setContent((layout.deepest + 1) * ROW);
    if (fresh || changed.has('zoom')) {
      zoomed = follow(choice.zoom);
      view.set(...extent(zoomed), !fresh);
      showCrumbs();
    }
    if (changed.has('direction'))
      scene.element.scrollTop = isFlame() ? scene.element.scrollHeight : 0;
    toolbar.show(choice);
    showFound();
    focused.textContent = describe(cursor);
    scene.draw();
  }

  return { id: 'flame', label: 'Flame graph', element, update, key, find };
}

/**
 * @param {Tree} tree
 * @param {Float64Array} size of nodes
 * @param {number[] | null} ranks of functions; null: by size
 * @returns {Layout}
 */
function layOut(tree, size, ranks) {
  const { nr, parent, function: fn, first, next, depth } = tree;
  const bySize = (/** @type {number} */ a, /** @type {number} */ b) => size[b] - size[a];
  const compare = ranks ? (/** @type {number} */ a, /** @type {number} */ b) =>
    ranks[fn[a]] - ranks[fn[b]] || bySize(a, b) : bySize;
  let deepest = 0;
  for (let node = 1; node < nr; node++) if (depth[node] > deepest && size[node] > 0) deepest = depth[node];
  /** @type {Map<number, Place>} */
  const places = new Map([[0, { x: 0, depth: 0, kids: null }]]);

  /** @param {number} node @param {Place} of its place */
  function placeKids(node, of) {
    of.kids = [];
    for (let kid = first[node]; kid; kid = next[kid]) if (size[kid] > 0) of.kids.push(kid);
    let { x } = of;
    for (const kid of of.kids.sort(compare)) {
      places.set(kid, { x, depth: of.depth + 1, kids: null });
      x += size[kid];
    }
    return of.kids;
  }

  /** @param {number} node @returns {Place} */
  function place(node) {
    const above = [];
    for (let at = node; !places.has(at); at = parent[at]) above.push(parent[at]);
    for (const at of above.reverse()) kids(at);
    return /** @type {Place} */ (places.get(node));
  }

  /** @param {number} node @returns {number[]} */
  function kids(node) {
    const own = place(node);
    return own.kids ?? placeKids(node, own);
  }

  return { tree, size, deepest, place, kids };
}
