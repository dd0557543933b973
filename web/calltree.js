// SPDX-License-Identifier: GPL-2.0-or-later
//
// The call tree: from the outermost function, or inverted, from the innermost one.
import { VirtualTable, button, h } from './base.js';
import { baseName, changeCell, choiceSwitches, comparison, functionActions, functionCommands, nameCell, shareCell, valueText } from './functions.js';
import { binaryName } from './state.js';

/** @typedef {import('./types.js').App} App */
/** @typedef {import('./types.js').View} View */
/** @typedef {import('./types.js').Tree} Tree */

/** What is expanded, by the names on the path; the numbers of nodes change with the selection.
 * @typedef {Map<number, any>} Expanded */
/** @typedef {{node: number, depth: number, expanded: Expanded | null, owner: Expanded, parent:
 *   number, position: number,
 *   siblings: number}} TreeRow */

/** @param {App} app @returns {View} */
export function createCallTree(app) {
  /** @type {TreeRow[]} */
  let rows = [];
  // One for each direction: their paths differ.
  /** @type {Record<string, Expanded>} */
  const expandedBy = { true: new Map(), false: new Map() };
  const root = () => expandedBy[String(app.choice.inverted)];
  const tree = () => app.choice.inverted ? app.inverted() : app.tree();
  const actions = functionActions(app);
  const switches = choiceSwitches(app, [
    ['inverted', false, true, 'Inverted', 'The innermost functions are the roots (i)'],
    ['recursion', false, true, 'Merge recursion', 'Show recursive calls as one frame (r)'],
    ...app.data.before ? [/** @type {any} */ (
      ['compare', 'share', 'absolute', 'Absolute', 'Compare numbers rather than shares'])] : []]);
  let activeNode = 0;

  const show = () => {
    rows = flatten(tree(), root());
    const active = rows.findIndex((row) => row.node === activeNode);
    table.setRows(rows.length, active);
  };
  const setExpanded = (/** @type {number} */ i, /** @type {boolean} */ on) => {
    const { owner, node } = rows[i];
    const key = nodeKey(tree(), node);
    if (on) owner.set(key, new Map());
    else owner.delete(key);
    show();
  };
  const select = (/** @type {number} */ i) => {
    activeNode = rows[i].node;
    app.choose({ function: tree().function[activeNode] }, true);
  };
  const reveal = (/** @type {number} */ node) => {
    const all = tree();
    expandTo(all, root(), node);
    activeNode = node;
    show();
    table.activate(table.active);
  };
  const expandHeaviest = () => reveal(heaviestLeaf(tree(), activeNode));
  const table = new VirtualTable({ label: 'Call tree', role: 'treegrid',
    row: (i) => treeRow(app, tree(), rows[i]),
    onActive: select,
    onOpen: (i) => functionCommands.open(app, tree().function[rows[i].node]),
    onClick: (i, target) => {
      if (!target.closest('.toggle')) return false;
      setExpanded(i, !rows[i].expanded);
      return true;
    },
    onKey: (event, i) => {
      const row = rows[i];
      if (event.key === '*' || event.key === 'e') {
        expandHeaviest();
      } else if (event.key === 'ArrowRight' && row) {
        if (!row.expanded && tree().first[row.node]) setExpanded(i, true);
        else if (row.expanded) table.activate(i + 1);
      } else if (event.key === 'ArrowLeft' && row) {
        if (row.expanded) setExpanded(i, false);
        else if (row.parent) table.activate(rows.findIndex(({ node }) => node === row.parent));
      } else {
        return false;
      }
      return true;
    } });

  return {
    id: 'calltree', label: 'Call tree',
    element: h('section', { class: 'view list' },
      h('div', { class: 'toolbar' }, actions.element, switches.element,
        button('Expand heaviest', 'Expand the heaviest path below the selected row (e)',
          expandHeaviest),
        button('Collapse all', 'Collapse all rows', () => {
          root().clear();
          show();
        })), table.element),
    update: (changed) => {
      actions.update();
      switches.update();
      table.setColumns(treeColumns(app));
      if (changed.size === 1 && changed.has('function')) {
        table.draw();
        return;
      }
      if (!root().size) expandTo(tree(), root(), heaviestLeaf(tree(), 0));
      show();
    },
    find: (direction) => {
      const node = nextMatch(tree(), app.matches(), activeNode, direction);
      if (node) reveal(node);
    },
  };
}

/** @param {App} app @returns {import('./base.js').Column[]} */
function treeColumns({ choice, data }) {
  const total = choice.inverted
    ? { label: 'Self', title: 'In the innermost function, called on this path' }
    : { label: 'Total', title: 'With what it calls' };
  return [
    { id: 'total', class: 'number', ...total },
    data.before ? { id: 'change', label: 'Change', title: '+ is slower, − is faster',
      class: 'number' }
      : { id: 'share', label: `${total.label} %`, title: total.title, class: 'share' },
    ...choice.inverted ? []
      : [{ id: 'self', label: 'Self', title: 'In the function itself', class: 'number wide' }],
    { id: 'name', label: 'Function', class: 'main' },
    { id: 'binary', label: 'Binary', class: 'binary wide' },
  ];
}

/**
 * @param {App} app
 * @param {Tree} tree
 * @param {TreeRow} row
 * @returns {import('./base.js').TableRow}
 */
function treeRow(app, tree, { node, depth, expanded, position, siblings }) {
  const fn = tree.function[node];
  const compared = tree.beforeTotal && comparison(app, tree.beforeTotal[node], tree.total[node]);
  const binary = tree.binary[node] ? app.data.strings[tree.binary[node]] : binaryName(app.data, fn);
  const leaf = !tree.first[node];
  const name = tree.binary[node] ? h('b', { class: 'name' }, baseName(binary))
    : nameCell(app, fn, tree.category[node]);
  return {
    class: fn === app.choice.function ? 'same' : '',
    attributes: { 'aria-level': depth + 1, 'aria-posinset': position, 'aria-setsize': siblings,
      'aria-expanded': leaf ? null : String(!!expanded) },
    cells: [
      valueText(app, tree.total[node]),
      compared ? changeCell(compared.scale, compared.change)
        : shareCell(tree.total[node], tree.total[0]),
      ...app.choice.inverted ? [] : [valueText(app, tree.self[node])],
      [h('span', { class: 'indent', style: { width: `${depth * 12}px` } }),
        h('span', { class: 'toggle', 'aria-hidden': 'true' }, leaf ? '' : expanded ? '▾' : '▸'),
          name,
        tree.inlined[node] ? h('small', null, 'inlined') : null],
      h('span', { title: binary }, baseName(binary)),
    ],
  };
}

/** @param {Tree} tree @param {number} node */
function nodeKey(tree, node) {
  return tree.binary[node] ? -tree.binary[node] : tree.function[node];
}

/** @param {Tree} tree @param {number} node */
function nodeWeight(tree, node) {
  return Math.max(tree.total[node], tree.beforeTotal?.[node] ?? 0);
}

/**
 * @param {Tree} tree
 * @param {number} node
 * @returns {number[]} the heaviest first, without those that are not selected
 */
function heavyChildren(tree, node) {
  const children = [];
  for (let child = tree.first[node]; child; child = tree.next[child]) if (nodeWeight(tree, child))
    children.push(child);
  return children.sort((a, b) => nodeWeight(tree, b) - nodeWeight(tree, a));
}

/** @param {Tree} tree @param {Expanded} root @returns {TreeRow[]} the rows that are visible */
function flatten(tree, root) {
  /** @type {TreeRow[]} */
  const rows = [];
  /** @type {(parent: number, depth: number, owner: Expanded) => TreeRow[]} */
  const rowsOf = (parent, depth, owner) =>
    heavyChildren(tree, parent)
      .map((node, i, all) => ({ node, depth, owner, parent, position: i + 1, siblings: all.length,
      expanded: owner.get(nodeKey(tree, node)) ?? null }));
  // A stack rather than recursion: some profiles have very deep stacks.
  const left = rowsOf(0, 0, root).reverse();
  for (let row = left.pop(); row; row = left.pop()) {
    rows.push(row);
    if (row.expanded) for (const child of rowsOf(row.node, row.depth + 1, row.expanded).reverse())
      left.push(child);
  }
  return rows;
}

/**
 * @param {Tree} tree
 * @param {Expanded} root
 * @param {number} node whose ancestors are to be expanded
 */
function expandTo(tree, root, node) {
  const path = [];
  for (let at = tree.parent[node]; at; at = tree.parent[at]) path.push(nodeKey(tree, at));
  for (const key of path.reverse()) {
    if (!root.has(key)) root.set(key, new Map());
    root = root.get(key);
  }
}

/** @param {Tree} tree @param {number} node @returns {number} */
function heaviestLeaf(tree, node) {
  for (;;) {
    let heaviest = 0;
    for (let child = tree.first[node]; child; child = tree.next[child])
      if (nodeWeight(tree, child) > (heaviest ? nodeWeight(tree, heaviest) : 0)) heaviest = child;
    if (!heaviest) return node;
    node = heaviest;
  }
}

/**
 * @param {Tree} tree
 * @param {Uint8Array | null} matches
 * @param {number} from
 * @param {1 | -1} direction
 * @returns {number} 0: none
 */
function nextMatch(tree, matches, from, direction) {
  if (!matches) return 0;
  const below = new Uint8Array(tree.nr);
  for (let i = tree.nr - 1; i > 0; i--) {
    if (nodeWeight(tree, i) && matches[tree.function[i]]) below[i] = 1;
    below[tree.parent[i]] |= below[i];
  }
  // Where the walk, in the order of the rows, meets `from` and matches.
  const found = [];
  let place = -1;
  const left = [0];
  for (let node = left.pop(); node !== undefined; node = left.pop()) {
    if (node === from) place = found.length;
    else if (node && matches[tree.function[node]] && nodeWeight(tree, node)) found.push(node);
    const children = heavyChildren(tree, node).filter((child) => below[child] || child === from);
    for (const child of children.reverse()) left.push(child);
  }
  if (!found.length) return 0;
  const at = direction > 0 ? Math.max(place, 0) : place - 1;
  return found[(at + 2 * found.length) % found.length];
}
