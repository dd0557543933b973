// SPDX-License-Identifier: GPL-2.0-or-later
// The interactive part of a flame graph: zoom, search, keys, details, width. It replaces the frames
// that flame_svg.c drew with those that are visible now. The build drops comment lines and
// indentation, so no string may span lines.
(() => {
	'use strict';

	const SVG = 'http://www.w3.org/2000/svg';
	const HTML = 'http://www.w3.org/1999/xhtml';
	const svg = document.currentScript.ownerSVGElement;
	const find = (query) => svg.querySelector(query);
	const setting = svg.dataset;
	const number = (name) => Number(setting[name] || 0);

	const NR = number('frames');
	const HEADER = number('header'), FOOTER = number('footer'), ROW = number('row');
	const MARGIN = number('margin'), TOOLS = number('tools');
	const DIFFERENTIAL = number('differential');
	const PAD = 4, BASELINE = 12, STATUS = 27, TOOLBAR = 34;
	const DRAW_MIN = 0.3, OUTLINE_MIN = 3;
	const KINDS = ['', 'user', 'kernel', 'task'];

	// The data: flame_svg.c describes the encoding

	function digits(query) {
		const text = find(query).textContent;
		let at = 0;
		return () => {
			let value = 0, unit = 1;
			for (;;) {
				const digit = text.charCodeAt(at++) - 63;
				if (!(digit >= 32))
					return value + digit * unit;
				value += (digit - 32) * unit;
				unit *= 32;
			}
		};
	}

	const names = find('.names').textContent.split('\n');
	const looks = [];
	const look = new Uint32Array(NR), depth = new Uint32Array(NR), parent = new Int32Array(NR);
	const end = new Uint32Array(NR);
	const self = new Float64Array(NR), total = new Float64Array(NR), left = new Float64Array(NR);
	const hidden = new Float64Array(NR), before = new Float64Array(NR);

	function readLooks() {
		const next = digits('metadata.looks');
		for (let i = number('looks'); i > 0; i--) {
			const name = names[next()], binary = names[next()], flags = next();
			const color = '#' + next().toString(16).padStart(6, '0');
			looks.push({ name, binary, kind: KINDS[flags >> 1], inlined: flags & 1, color });
		}
		if (!looks[0].name)
			looks[0].name = 'all';
	}

	function readFrames() {
		const next = digits('metadata.frames');
		for (let i = 0; i < NR; i++) {
			const head = next();
			let above = i - 1;
			for (let up = Math.floor(head / 4); up > 0; up--)
				above = parent[above];
			parent[i] = above;
			depth[i] = i ? depth[above] + 1 : 0;
			look[i] = next();
			self[i] = head & 1 ? next() : 0;
			hidden[i] = head & 2 ? next() : 0;
			total[i] = self[i] + hidden[i];
			if (DIFFERENTIAL)
				before[i] = next() + next();
			end[i] = i + 1;
		}
	}

	function sumUp() {
		const right = new Float64Array(NR);
		for (let i = NR - 1; i > 0; i--) {
			const above = parent[i];
			total[above] += total[i];
			before[above] += before[i];
			end[above] = Math.max(end[above], end[i]);
		}
		for (let i = 1; i < NR; i++) {
			const above = parent[i];
			left[i] = left[above] + right[above];
			right[above] += total[i];
		}
	}

	readLooks();
	readFrames();
	sumUp();

	// State: what is zoomed, searched and focused

	const state = { zoom: 0, query: '', exact: false };
	let focused = 0;
	let hits = null; // by look
	let visible = []; // frames, in preorder
	let elements = new Map(); // frame to rect
	let width = 0, height = 0, cell = 7.3;

	const nameOf = (i) => looks[look[i]].name;

	// Text

	const plural = (value) => value === 1 ? setting.unit.replace(/s$/, '') : setting.unit;
	const SCALES = [[1e9, 's'], [1e6, 'ms'], [1e3, '\u00b5s'], [1, 'ns']];
	const duration = (ns) => {
		const [scale, unit] = SCALES.find(([size]) => ns >= size) || SCALES[3];
		return (ns / scale).toFixed(scale > 1 ? 3 : 0) + ' ' + unit;
	};
	const amount = (value) => setting.unit === 'ns' ? duration(value) :
		value.toLocaleString('en-US') + ' ' + plural(value);
	const percent = (part, all) => (all ? 100 * part / all : 0).toFixed(2) + ' %';

	function changeOf(i) {
		const now = 100 * total[i] / total[0];
		const then = before[0] ? 100 * before[i] / before[0] : 0;
		const change = DIFFERENTIAL * (now - then);
		const [old, young] = DIFFERENTIAL > 0 ? [before[i], total[i]] : [total[i], before[i]];
		return (change < 0 ? '\u2212' : '+') + Math.abs(change).toFixed(2) + ' points (' +
			old.toLocaleString('en-US') + ' \u2192 ' + amount(young) + ')';
	}

	function detailsOf(i) {
		const it = looks[look[i]];
		const where = [it.binary, it.kind, it.inlined ? 'inlined' : ''].filter(Boolean);
		const lines = where.length ? [where.join(', ')] : [];
		lines.push(amount(total[i]) + ', ' + percent(total[i], total[0]) + ' of total');
		if (state.zoom && i > state.zoom)
			lines.push(percent(total[i], total[state.zoom]) + ' of the view');
		if (self[i])
			lines.push('self ' + amount(self[i]) + ', ' + percent(self[i], total[0]));
		if (DIFFERENTIAL)
			lines.push('change ' + changeOf(i));
		return lines;
	}

	const cellsOf = (code) => code < 0x500 ? 1 : code < 0x10000 ? 2 : 3;

	function fit(text, pixels) {
		let room = Math.floor(pixels / cell);
		if (room < 1)
			return '';
		// Names may be very long: look only at the characters that can fit.
		const chars = Array.from(text.slice(0, 2 * room + 2));
		const sizes = chars.map((c) => cellsOf(c.codePointAt(0)));
		if (sizes.reduce((sum, size) => sum + size, 0) <= room)
			return text;
		if (room < 3)
			return '';
		let cut = 0;
		for (room--; sizes[cut] <= room; cut++)
			room -= sizes[cut];
		return chars.slice(0, cut).join('') + '\u2026';
	}

	// Drawing

	function make(name, attributes, children) {
		const element = document.createElementNS(SVG, name);
		for (const key in attributes)
			element.setAttribute(key, attributes[key]);
		element.append(...(children || []));
		return element;
	}

	function html(name, properties, children) {
		const element = document.createElementNS(HTML, name);
		Object.assign(element, properties);
		element.append(...(children || []));
		return element;
	}

	const layers = { narrow: find('.narrow'), wide: find('.wide'), labels: find('.labels') };
	const graph = find('.graph'), foot = find('.foot');

	function ancestorsOf(i) {
		const list = [];
		for (i = parent[i]; i >= 0; i = parent[i])
			list.unshift(i);
		return list;
	}

	// Skips subtrees that are too narrow to see, so the work depends on what is visible.
	function chooseVisible(scale) {
		visible = ancestorsOf(state.zoom);
		for (let i = state.zoom; i < end[state.zoom];) {
			if (total[i] * scale < DRAW_MIN) {
				i = end[i];
				continue;
			}
			visible.push(i);
			i++;
		}
	}

	function drawFrame(i, scale, bottom) {
		const above = i < state.zoom;
		const x = above ? MARGIN : MARGIN + (left[i] - left[state.zoom]) * scale;
		const w = above ? width - 2 * MARGIN : total[i] * scale;
		const y = ROW * (setting.icicle ? depth[i] : bottom - depth[i]);
		const rect = document.createElementNS(SVG, 'rect');
		const hit = hits && hits[look[i]];
		rect.setAttribute('x', x.toFixed(2));
		rect.setAttribute('y', y);
		rect.setAttribute('width', w.toFixed(2));
		rect.setAttribute('height', ROW - 1);
		rect.setAttribute('fill', looks[look[i]].color);
		if (hit || above)
			rect.setAttribute('class', (hit ? 'hit ' : '') + (above ? 'above' : ''));
		rect.frame = i;
		elements.set(i, rect);
		const text = w > 2 * PAD + cell ? fit(nameOf(i), w - 2 * PAD) : '';
		return { rect, text, wide: w >= OUTLINE_MIN, x, y };
	}

	function draw() {
		const scale = (width - 2 * MARGIN) / total[state.zoom];
		const made = { narrow: [], wide: [], labels: [] };
		let rows = number('rows');
		elements = new Map();
		chooseVisible(scale);
		for (const i of visible)
			rows = Math.max(rows, depth[i] + 1);
		for (const i of visible) {
			const { rect, text, wide, x, y } = drawFrame(i, scale, rows - 1);
			made[wide ? 'wide' : 'narrow'].push(rect);
			if (!text)
				continue;
			const label = document.createElementNS(SVG, 'text');
			label.setAttribute('x', (x + PAD).toFixed(2));
			label.setAttribute('y', y + BASELINE);
			label.textContent = text;
			label.frame = i;
			made.labels.push(label);
		}
		for (const name in made) {
			const list = document.createDocumentFragment();
			for (const element of made[name])
				list.appendChild(element);
			layers[name].replaceChildren(list);
		}
		graph.classList.toggle('searching', !!hits);
		setHeight(rows);
	}

	// The lines around the graph; a shortened one has its full text as a tooltip.
	function fitLine(line) {
		const whole = line.dataset.full, chars = Array.from(whole);
		const beside = line.dataset.tools && width >= 2 * TOOLS ? TOOLS : 0;
		const fits = (text) => {
			line.textContent = text;
			return line.getComputedTextLength() <= width - 2 * MARGIN - beside;
		};
		const cutTo = (count) => chars.slice(0, count).join('') + '\u2026';
		if (fits(whole))
			return;
		let least = 0, most = chars.length - 1;
		while (least < most) {
			const middle = Math.ceil((least + most) / 2);
			if (fits(cutTo(middle)))
				least = middle;
			else
				most = middle - 1;
		}
		line.replaceChildren(cutTo(least), make('title', {}, [whole]));
	}

	function setHeight(rows) {
		const top = HEADER + (width < 2 * TOOLS ? TOOLBAR : 0);
		height = top + ROW * rows + FOOTER;
		graph.setAttribute('transform', `translate(0,${top})`);
		foot.setAttribute('transform', `translate(0,${top + ROW * rows + 8})`);
		svg.setAttribute('width', width);
		svg.setAttribute('height', height);
		svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
	}

	// Panels are HTML, so that they wrap, scroll and take focus as users expect

	const found = html('output', {});
	const input = html('input', { type: 'search', placeholder: 'Search: text or regex' });
	const caseButton = html('button', { title: 'Match case (i)', textContent: 'Aa' });
	const resetButton = html('button', { title: 'Reset zoom and search (Esc)', textContent: 'Reset' });
	const helpButton = html('button', { title: 'Keyboard shortcuts (?)', textContent: '?' });
	const status = html('div', { className: 'status' });
	const tip = html('div', { className: 'tip' });
	const help = html('div', { className: 'help' }, [html('table', {}, [
		['click, Enter', 'zoom to the frame'],
		['Esc', 'reset zoom and search'],
		['Backspace', 'zoom out to the caller'],
		['arrows', 'move between frames'],
		['/  Ctrl-F', 'search; Enter goes to the next match'],
		['n  N', 'next match, previous match'],
		['i', 'toggle case-sensitive search'],
		['?', 'toggle this help'],
	].map(([key, about]) => html('tr', {}, [
		html('td', { textContent: key }), html('td', { textContent: about })])))]);

	function panel(content, pixels, high) {
		const box = make('foreignObject', { width: pixels, height: high }, [content]);
		svg.append(box);
		return box;
	}

	const tools = html('div', { className: 'tools' },
		[found, resetButton, input, caseButton, helpButton]);
	const toolBox = panel(tools, TOOLS, 30);
	const statusBox = panel(status, 100, STATUS);
	const helpBox = panel(help, 10, 10);
	const tipBox = panel(tip, 10, 10);
	input.setAttribute('aria-label', 'search');
	found.setAttribute('aria-live', 'polite');
	tipBox.style.pointerEvents = 'none';
	tipBox.style.display = helpBox.style.display = 'none';

	// The toolbar and the details stay visible while a tall graph scrolls.
	function placePanels() {
		const top = svg.getBoundingClientRect().top;
		const narrow = width < 2 * TOOLS;
		const seen = Math.min(height, innerHeight - top);
		toolBox.setAttribute('x', Math.max(0, width - TOOLS - MARGIN));
		toolBox.setAttribute('y', Math.max(narrow ? HEADER - 6 : 12, 4 - top));
		toolBox.setAttribute('width', Math.min(TOOLS, width - MARGIN));
		statusBox.setAttribute('width', width);
		statusBox.setAttribute('y', Math.max(HEADER, seen - STATUS));
		helpBox.setAttribute('x', Math.max(0, width - help.offsetWidth - MARGIN));
		helpBox.setAttribute('y', Number(toolBox.getAttribute('y')) + 36);
	}

	function describe(i) {
		status.replaceChildren(html('b', { textContent: nameOf(i) }),
			' \u2014 ' + detailsOf(i).join(' \u00b7 '));
	}

	function describeNothing() {
		if (state.zoom)
			describe(state.zoom);
		else
			status.textContent = amount(total[0]) +
				' in total \u00b7 click a frame to zoom, / to search, ? for all keys';
	}

	function showTip(i, x, y) {
		const name = nameOf(i);
		tip.replaceChildren(
			html('b', { textContent: name.length > 400 ? fit(name, 400 * cell) : name }),
			...detailsOf(i).map((line) => html('div', { textContent: line })));
		tipBox.style.display = '';
		const box = svg.getBoundingClientRect(), size = tip.getBoundingClientRect();
		const right = Math.min(innerWidth - box.left, width);
		const low = Math.min(innerHeight - box.top, height);
		x = Math.min(x - box.left + 14, right - size.width - 8);
		y = y - box.top + 18;
		if (y + size.height > low - STATUS)
			y -= size.height + 32;
		tipBox.setAttribute('x', Math.max(4, x));
		tipBox.setAttribute('y', Math.max(4, y));
	}

	// Actions

	function pattern() {
		const flags = state.exact ? '' : 'i';
		input.classList.remove('bad');
		try {
			return new RegExp(state.query, flags);
		} catch (error) {
			// Search for incomplete patterns and names such as operator( literally.
			input.classList.add('bad');
			return new RegExp(state.query.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), flags);
		}
	}

	// The total of matching frames, nested ones counted once, and the total of the frames that
	// were dropped as too narrow, which might match, too.
	function matched(from) {
		let sum = 0, unknown = 0, count = 0;
		for (let i = from; i < end[from];) {
			const hit = hits[look[i]];
			sum += hit ? total[i] : 0;
			unknown += hit ? 0 : hidden[i];
			count += hit;
			i = hit ? end[i] : i + 1;
		}
		return { sum, unknown, count };
	}

	function search() {
		caseButton.setAttribute('aria-pressed', state.exact);
		if (!state.query) {
			hits = null;
			found.textContent = '';
			found.title = '';
			return;
		}
		const wanted = pattern();
		hits = Uint8Array.from(looks, (it) => wanted.test(it.name) ? 1 : 0);
		const all = matched(0);
		found.textContent = percent(all.sum, total[0]) + ' matched';
		found.title = amount(all.sum) + ' in ' + all.count + ' frames' + (all.unknown ?
			'; ' + percent(all.unknown, total[0]) + ' is in frames too narrow to search' : '');
	}

	function refresh() {
		search();
		draw();
		placePanels();
		describeNothing();
		resetButton.style.display = state.zoom || state.query ? '' : 'none';
	}

	// The URL holds the state, so that reload, back and a shared link keep it.

	function save(replace) {
		const parts = new URLSearchParams();
		if (state.zoom)
			parts.set('zoom', state.zoom);
		if (state.query)
			parts.set('search', state.query);
		if (state.exact)
			parts.set('case', 1);
		const hash = '#' + parts;
		try {
			if (replace)
				history.replaceState(null, '', hash);
			else if (location.hash !== hash)
				history.pushState(null, '', hash);
		} catch (error) {
			// A sandboxed frame has no history; everything else still works.
		}
	}

	function load() {
		const parts = new URLSearchParams(location.hash.slice(1));
		const zoom = Number(parts.get('zoom'));
		state.zoom = Number.isInteger(zoom) && zoom > 0 && zoom < NR ? zoom : 0;
		state.query = parts.get('search') || '';
		state.exact = parts.get('case') === '1';
		input.value = state.query;
		focused = state.zoom;
	}

	function zoomTo(i) {
		state.zoom = i;
		tipBox.style.display = 'none';
		save();
		refresh();
	}

	function searchFor(query) {
		state.query = query;
		save(true);
		refresh();
	}

	function toggleCase() {
		state.exact = !state.exact;
		save(true);
		refresh();
	}

	function reset() {
		helpBox.style.display = 'none';
		input.value = state.query = '';
		input.blur();
		zoomTo(0);
	}

	function toggleHelp() {
		helpBox.style.display = helpBox.style.display ? '' : 'none';
		placePanels();
	}

	function openSearch() {
		input.focus();
		input.select();
	}

	// Only one frame is in the Tab order; the arrow keys move from it.
	function focusOn(i, options) {
		const rect = elements.get(i), old = elements.get(focused);
		if (!rect)
			return;
		if (old)
			old.removeAttribute('tabindex');
		focused = i;
		rect.setAttribute('tabindex', 0);
		rect.setAttribute('role', 'button');
		rect.setAttribute('aria-label', nameOf(i) + ', ' + detailsOf(i).join(', '));
		rect.focus(options);
		describe(i);
	}

	function widestChild(i) {
		return visible.filter((other) => parent[other] === i)
			.reduce((best, other) => best < 0 || total[other] > total[best] ? other : best, -1);
	}

	function beside(i, step) {
		const row = visible.filter((other) => depth[other] === depth[i]);
		return row[row.indexOf(i) + step];
	}

	function nextMatch(step) {
		const list = visible.filter((i) => hits && hits[look[i]]);
		if (!list.length)
			return;
		const ahead = step > 0 ? list.find((i) => i > focused) :
			list.filter((i) => i < focused).pop();
		focusOn(ahead === undefined ? list[step > 0 ? 0 : list.length - 1] : ahead);
	}

	const toLeaf = () => focusOn(widestChild(focused));
	const toRoot = () => focusOn(parent[focused]);
	const keys = {
		'/': openSearch, '?': toggleHelp, 'i': toggleCase, 'Escape': reset,
		'n': () => nextMatch(1), 'N': () => nextMatch(-1),
		'ArrowUp': setting.icicle ? toRoot : toLeaf,
		'ArrowDown': setting.icicle ? toLeaf : toRoot,
		'ArrowLeft': () => focusOn(beside(focused, -1)),
		'ArrowRight': () => focusOn(beside(focused, 1)),
		'Backspace': () => state.zoom && zoomTo(parent[state.zoom]),
		'Enter': () => {
			zoomTo(focused);
			focusOn(focused);
		},
	};

	function onKey(event) {
		const typing = event.target === input;
		if (event.key === 'Escape') {
			reset();
		} else if ((event.ctrlKey || event.metaKey) && event.key === 'f' && !typing) {
			openSearch();
		} else if (typing && event.key === 'Enter') {
			nextMatch(1);
		} else {
			if (typing || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key])
				return;
			if (event.key === 'Enter' && event.target.frame === undefined)
				return;
			keys[event.key]();
		}
		event.preventDefault();
	}

	function resize() {
		const room = svg.parentElement ? svg.parentElement.clientWidth : innerWidth;
		width = setting.fluid ? Math.max(320, room) : svg.viewBox.baseVal.width;
		refresh();
		// A scroll bar that has just appeared takes some of the width.
		const left = document.documentElement.clientWidth;
		if (setting.fluid && !svg.parentElement && left && left < width && left >= 320) {
			width = left;
			refresh();
		}
		svg.querySelectorAll('[data-full]').forEach(fitLine);
	}

	function measureFont() {
		const probe = make('text', { visibility: 'hidden' }, ['M'.repeat(100)]);
		layers.labels.append(probe);
		cell = probe.getComputedTextLength() / 100 || cell;
	}

	graph.setAttribute('role', 'group');
	graph.setAttribute('aria-label', 'frames; the arrow keys move between them');
	graph.addEventListener('click', (event) => {
		if (event.target.frame === undefined)
			return;
		zoomTo(event.target.frame);
		focusOn(state.zoom, { preventScroll: true });
	});
	graph.addEventListener('mousemove', (event) => {
		const i = event.target.frame;
		if (i === undefined)
			return;
		describe(i);
		showTip(i, event.clientX, event.clientY);
	});
	graph.addEventListener('mouseout', () => {
		tipBox.style.display = 'none';
		describeNothing();
	});
	input.addEventListener('input', () => searchFor(input.value));
	caseButton.addEventListener('click', toggleCase);
	resetButton.addEventListener('click', reset);
	helpButton.addEventListener('click', toggleHelp);
	addEventListener('keydown', onKey);
	addEventListener('popstate', () => {
		load();
		refresh();
	});
	addEventListener('scroll', placePanels);
	addEventListener('resize', resize);
	measureFont();
	load();
	resize();
	elements.get(focused).setAttribute('tabindex', 0);
})();
