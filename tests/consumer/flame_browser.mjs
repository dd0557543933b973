#!/usr/bin/env node
// SPDX-License-Identifier: GPL-2.0-or-later
// Flame graphs as a reader meets them: in a browser, compared with the folded text they came from.
// Usage: node flame_browser.mjs [path of flametool]. playwright-core is looked for beside this file
// and in $KSCOPE_NODE_MODULES.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const TOOL = process.argv[2] || `${process.env.BUILD || 'build'}/tests/flametool`;
const BROWSER = process.env.CHROMIUM || '/usr/bin/chromium';
const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
	'--disable-background-networking', '--disable-component-update', '--disable-sync'];
const HANGS = 500000; // ms that nothing takes, however slow and busy the machine is

function skip(reason) {
	console.log(`skip flame_browser: ${reason}`);
	process.exit(0);
}

function playwright() {
	for (const place of [import.meta.url, `${process.env.KSCOPE_NODE_MODULES}/x.js`]) {
		try {
			return createRequire(place)('playwright-core');
		} catch (error) {
			continue;
		}
	}
	return skip('playwright-core is not installed');
}

const { chromium } = playwright();
if (!existsSync(BROWSER))
	skip(`${BROWSER} is not there`);
if (!existsSync(TOOL))
	skip(`${TOOL} is not built`);

const folder = mkdtempSync(join(tmpdir(), 'kscope-flame-'));
const browser = await chromium.launch({ executablePath: BROWSER, args: FLAGS, timeout: HANGS });
let failures = 0;

async function test(name, body) {
	try {
		await body();
		console.log(`ok ${name}`);
	} catch (error) {
		failures++;
		console.log(`not ok ${name}: ${String(error.message).split('\n')[0]}`);
	}
}

function equal(got, wanted, what) {
	if (got !== wanted)
		throw new Error(`${what}: ${JSON.stringify(got)}, not ${JSON.stringify(wanted)}`);
}

function check(condition, what) {
	if (!condition)
		throw new Error(what);
}

async function wait(condition, what) {
	for (const end = Date.now() + HANGS; !await condition();)
		check(Date.now() < end, what);
}

function near(got, wanted, by, what) {
	check(Math.abs(got - wanted) <= by, `${what}: ${got}, not ${wanted}`);
}

// Inputs

const NASTY = [']]>', '</script>', '<script>alert(1)</script>', '&amp', '"\'quoted\'"', '--><!--',
	'a\\u0041b\\', '${x}`y`', '漢字かな名前関数', '🔥🔥🔥🔥🔥🔥🔥🔥', 'naïve_Ωмега', '  spaces  in  ',
	'std::map<std::string, std::vector<std::pair<int, '.repeat(5) + 'x'];

function random(seed) {
	return () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
}

function manyStacks(count) {
	const next = random(7), lines = [];
	for (let i = 0; i < count; i++) {
		const stack = ['main'];
		const deep = 4 + Math.floor(next() * 14);
		for (let level = 1; level < deep; level++) {
			const which = Math.floor(next() ** 3 * 6);
			stack.push(`${['do', 'Run', 'vfs', 'net'][which % 4]}_${level}_${which}`);
		}
		lines.push([stack, 1 + Math.floor(next() * 9)]);
	}
	return lines;
}

const nastyStacks = NASTY.map((name, i) => [['main', name, 'leaf_' + i], 100]);
const stacks = manyStacks(3000);
const all = stacks.reduce((sum, [, count]) => sum + count, 0);

function share(pattern) {
	const hit = stacks.filter(([stack]) => stack.some((name) => pattern.test(name)));
	return 100 * hit.reduce((sum, [, count]) => sum + count, 0) / all;
}

const underName = (name) => stacks.filter(([stack]) => stack.includes(name))
	.reduce((sum, [, count]) => sum + count, 0);

function picture(name, lines, options = []) {
	const file = join(folder, name + '.svg');
	const input = lines.map(([stack, ...counts]) => stack.join(';') + ' ' + counts.join(' ') + '\n');
	execFileSync(TOOL, ['-o', file, ...options], { input: input.join('') });
	return file;
}

// Pages

async function open(file, { width = 1200, height = 800, hash = '' } = {}) {
	const page = await browser.newPage({ viewport: { width, height } });
	page.setDefaultTimeout(HANGS);
	page.complaints = [];
	page.on('console', (message) => page.complaints.push(message.text()));
	page.on('pageerror', (error) => page.complaints.push(error.message));
	page.on('dialog', (dialog) => {
		page.complaints.push('dialog ' + dialog.message());
		dialog.dismiss();
	});
	await page.goto('file://' + file + hash);
	return page;
}

async function close(page) {
	equal(page.complaints.join('; '), '', 'console');
	await page.close();
}

const status = (page) => page.locator('.status').textContent();
const found = (page) => page.locator('output').textContent();
const hashOf = (page) => page.evaluate(() => location.hash);

// The box of the first frame whose label starts so.
const frame = (page, label) => page.evaluate((start) => {
	const text = [...document.querySelectorAll('.labels text')]
		.find((it) => it.textContent.startsWith(start));
	const rect = text && [...document.querySelectorAll('.graph rect')]
		.find((it) => it.frame === text.frame);
	const { x, y, width, height } = rect ? rect.getBoundingClientRect() : {};
	return rect ? { x, y, width, height } : null;
}, label);

async function pointAt(page, label) {
	const box = await frame(page, label);
	check(box, `no frame ${label}`);
	await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
	return box;
}

async function click(page, label) {
	const box = await pointAt(page, label);
	await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
}

// Every label must end inside the rectangle that lies under it.
const overflowing = (page) => page.evaluate(() => {
	const rects = [...document.querySelectorAll('.graph rect')].map((it) => ({
		x: Number(it.getAttribute('x')), y: Number(it.getAttribute('y')),
		right: Number(it.getAttribute('x')) + Number(it.getAttribute('width')),
	}));
	const rows = Map.groupBy ? Map.groupBy(rects, (it) => it.y) : rects.reduce((map, it) =>
		map.set(it.y, [...(map.get(it.y) || []), it]), new Map());
	const bad = [];
	for (const text of document.querySelectorAll('.labels text')) {
		const x = Number(text.getAttribute('x')), row = rows.get(Number(text.getAttribute('y')) - 12);
		const box = row.find((it) => it.x <= x && x < it.right);
		if (!box || x + text.getComputedTextLength() > box.right)
			bad.push(text.textContent);
	}
	return { bad, count: document.querySelectorAll('.labels text').length };
});

async function checkLabels(page, what) {
	const { bad, count } = await overflowing(page);
	check(count > 0, `${what}: no labels`);
	equal(bad.join('|'), '', `${what}: labels that overflow`);
}

async function resize(page, width) {
	await page.setViewportSize({ width, height: 800 });
	await page.waitForFunction((w) => Math.abs(w - document.documentElement.width.baseVal.value) < 30,
		width);
}

const plain = picture('plain', stacks, ['--title', 'Plain', '--subtitle', 'made up', '--min', '0.001']);
const nasty = picture('nasty', nastyStacks, ['--title', '</title><b>"&\'', '--notes', ']]><i>']);

await test('hover shows details', async () => {
	const page = await open(plain);
	await pointAt(page, 'main');
	const total = underName('main').toLocaleString('en-US');
	check((await status(page)).startsWith(`main — ${total} samples, 100.00 % of total`),
		await status(page));
	check(await page.locator('.tip').isVisible(), 'no tip');
	check((await page.locator('.tip').textContent()).includes('100.00 % of total'), 'tip');
	await page.mouse.move(5, 5);
	check(!await page.locator('.tip').isVisible(), 'the tip stays');
	check((await status(page)).startsWith(`${total} samples in total`), await status(page));
	await close(page);
});

await test('click zooms and keeps the ancestors', async () => {
	const page = await open(plain);
	const narrow = await frame(page, 'do_1_0');
	await click(page, 'do_1_0');
	const wide = await frame(page, 'do_1_0');
	check(narrow.width < 1100, 'was wide before');
	near(wide.width, 1176, 2, 'width after zoom');
	near((await frame(page, 'main')).width, 1176, 2, 'ancestor');
	near((await frame(page, 'all')).width, 1176, 2, 'root');
	const percent = (100 * underName('do_1_0') / all).toFixed(2);
	await pointAt(page, 'do_1_0');
	check((await status(page)).includes(`${percent} % of total`), await status(page));
	await checkLabels(page, 'zoomed');
	await close(page);
});

await test('children stay inside their parent after zoom', async () => {
	const page = await open(plain);
	await click(page, 'do_1_0');
	const bad = await page.evaluate(() => {
		const boxes = [...document.querySelectorAll('.graph rect')].map((it) => ['x', 'y', 'width']
			.map((name) => Number(it.getAttribute(name))));
		return boxes.filter(([x, y, w]) => x < 11.9 || x + w > 1188.1 || (boxes.some((it) =>
			it[1] === y && it[0] < x - 0.02 && it[0] + it[2] > x + 0.03))).length;
	});
	equal(bad, 0, 'overlapping frames');
	await close(page);
});

await test('reset by button, by Escape and by the root', async () => {
	const page = await open(plain);
	const before = (await frame(page, 'do_1_0')).width;
	const same = async (how) => {
		near((await frame(page, 'do_1_0')).width, before, 0.1, how);
		equal(await hashOf(page), '', how);
	};
	await click(page, 'do_1_0');
	await page.getByText('Reset', { exact: true }).click();
	await same('button');
	check(!await page.getByText('Reset', { exact: true }).isVisible(), 'button stays');
	await click(page, 'do_1_0');
	await page.keyboard.press('Escape');
	await same('Escape');
	await click(page, 'do_1_0');
	await click(page, 'all');
	await same('root');
	await close(page);
});

await test('search finds the share that the stacks have', async () => {
	const page = await open(plain);
	for (const query of ['do_1_0', 'vfs', '^net_5', 'run_2|vfs_3', '_1[0-3]_', 'nothing', 'MAIN']) {
		await page.locator('input').fill(query);
		equal(await found(page), share(new RegExp(query, 'i')).toFixed(2) + ' % matched', query);
	}
	await page.locator('input').fill('run_');
	await page.locator('button[aria-pressed]').click();
	equal(await found(page), share(/run_/).toFixed(2) + ' % matched', 'case matters');
	await page.locator('input').fill('Run_');
	equal(await found(page), share(/Run_/).toFixed(2) + ' % matched', 'right case');
	const hits = await page.locator('rect.hit').count();
	check(hits > 0, 'nothing highlighted');
	await page.locator('input').fill('');
	equal(await page.locator('rect.hit').count(), 0, 'highlight stays');
	await close(page);
});

await test('a broken regex is looked for as text', async () => {
	const page = await open(picture('paren', [[['main', 'operator(('], 30], [['main', 'b'], 70]]));
	await page.locator('input').fill('tor((');
	equal(await found(page), '30.00 % matched', 'match');
	await close(page);
});

await test('keyboard', async () => {
	const page = await open(plain);
	await page.keyboard.press('/');
	await page.keyboard.type('vfs_2');
	equal(await found(page), share(/vfs_2/i).toFixed(2) + ' % matched', '/');
	await page.keyboard.press('Enter');
	check(/^vfs_2/.test(await status(page)), 'Enter goes to a match: ' + await status(page));
	const first = await page.evaluate(() => document.activeElement?.frame);
	await page.keyboard.press('n');
	const second = await page.evaluate(() => document.activeElement?.frame);
	check(second > first, 'n goes on');
	await page.keyboard.press('N');
	equal(await page.evaluate(() => document.activeElement?.frame), first, 'N goes back');
	await page.keyboard.press('i');
	equal(await page.locator('button[aria-pressed]').getAttribute('aria-pressed'), 'true', 'i');
	await page.keyboard.press('?');
	check(await page.locator('.help').isVisible(), '? shows the keys');
	await page.keyboard.press('Escape');
	check(!await page.locator('.help').isVisible(), 'Escape hides the keys');
	equal(await found(page), '', 'Escape ends the search');
	await page.keyboard.press('Control+f');
	equal(await page.evaluate(() => document.activeElement.type), 'search', 'Ctrl-F');
	await close(page);
});

for (const [name, options, leafward] of [['flame', [], 'ArrowUp'],
	['icicle', ['--icicle'], 'ArrowDown']]) {
	await test(`arrows move and Enter zooms in a ${name} graph`, async () => {
		const page = await open(picture(name, stacks, options));
		const here = () => page.evaluate(() => document.activeElement.getAttribute('aria-label'));
		const focused = () => page.evaluate(() => document.activeElement?.frame);
		for (let i = 0; i < 6 && await focused() === undefined; i++)
			await page.keyboard.press('Tab');
		equal(await focused(), 0, 'Tab comes to the root');
		await page.keyboard.press(leafward);
		check((await here()).startsWith('main,'), `leafward: ${await here()}`);
		await page.keyboard.press(leafward);
		check((await here()).startsWith('do_1_0,'), `widest child: ${await here()}`);
		await page.keyboard.press('ArrowRight');
		const beside = await here();
		check(/_1_/.test(beside) && !beside.startsWith('do_1_0,'), `right: ${beside}`);
		await page.keyboard.press('ArrowLeft');
		await page.keyboard.press('Enter');
		near((await frame(page, 'do_1_0')).width, 1176, 2, 'Enter zooms');
		check((await here()).startsWith('do_1_0,'), 'focus stays');
		await page.keyboard.press('Backspace');
		check((await frame(page, 'do_1_0')).width < 1100, 'Backspace zooms out');
		await page.keyboard.press('Escape');
		equal(await hashOf(page), '', 'Escape');
		const [root, main] = [await frame(page, 'all'), await frame(page, 'main')];
		check((root.y < main.y) === (name === 'icicle'), 'the root is on the wrong side');
		await close(page);
	});
}

await test('the URL restores zoom and search', async () => {
	const page = await open(plain);
	await click(page, 'do_1_0');
	await page.locator('input').fill('Vfs_2|a&b #1');
	await page.locator('button[aria-pressed]').click();
	await page.locator('input').fill('vfs_2|a&b #1');
	const wanted = await found(page), hash = await hashOf(page);
	await page.reload();
	equal(await found(page), wanted, 'search after reload');
	near((await frame(page, 'do_1_0')).width, 1176, 2, 'zoom after reload');
	const other = await open(plain, { hash });
	equal(await found(other), wanted, 'search from a link');
	await close(other);
	await page.goto('about:blank');
	await page.goto('file://' + plain);
	await click(page, 'do_1_0');
	await page.goBack();
	await wait(async () => (await frame(page, 'do_1_0')).width < 1100, 'back zooms out');
	await close(page);
	for (const bad of ['#zoom=99999999', '#zoom=-1', '#zoom=x', '#zoom=1.5', '#%%%', '#search=(']) {
		const tried = await open(plain, { hash: bad });
		near((await frame(tried, 'all')).width, 1176, 2, bad);
		await close(tried);
	}
});

await test('labels fit at every width and follow the window', async () => {
	const page = await open(plain);
	for (const width of [1200, 1900, 700, 420]) {
		await resize(page, width);
		await checkLabels(page, `${width} px`);
		const root = await frame(page, 'all');
		near(root.width, width - 24, 30, 'root');
		const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
		check(over <= 0, `${width} px: scrolls sideways by ${over}`);
	}
	await close(page);
});

await test('a fixed width stays', async () => {
	const page = await open(picture('fixed', stacks, ['--width', '900']));
	near((await frame(page, 'all')).width, 876, 1, 'root');
	await checkLabels(page, 'fixed');
	await close(page);
});

await test('the lines around the graph fit', async () => {
	const long = (word) => `${word} & <more> `.repeat(60).trim();
	const page = await open(picture('lines', stacks,
		['--title', long('title'), '--subtitle', long('subtitle'), '--notes', long('notes')]));
	for (const size of [1900, 400, 1200]) {
		await resize(page, size);
		const ends = await page.evaluate(() => ['.title', '.sub', '.notes'].map((line) =>
			document.querySelector(line).getBoundingClientRect().right));
		check(ends.every((end) => end > size / 3 && end <= size - 12), `at ${size}: ${ends}`);
	}
	equal(await page.locator('.title title').textContent(), long('title'), 'what was cut');
	await close(page);
});

await test('any name is shown as it is', async () => {
	const page = await open(nasty);
	equal(await page.title(), '</title><b>"&\'', 'title');
	equal(await page.locator('svg script').count(), 1, 'scripts');
	equal(await page.evaluate(() => document.querySelectorAll('i, metadata b').length), 0, 'markup');
	await checkLabels(page, 'nasty');
	for (const name of NASTY) {
		const literal = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
		await page.locator('input').fill('^' + literal + '$');
		equal(await found(page), (100 / NASTY.length).toFixed(2) + ' % matched', name);
	}
	await page.locator('input').fill('leaf_0');
	await page.keyboard.press('Enter');
	await page.keyboard.press('ArrowDown');
	check((await status(page)).startsWith(']]> — '), await status(page));
	await close(page);
});

await test('labels fit without scripts', async () => {
	for (const file of [plain, nasty]) {
		const still = file.replace('.svg', '-still.svg');
		writeFileSync(still, readFileSync(file, 'utf8').replace(/<script>[^]*<\/script>/, ''));
		const page = await open(still);
		await checkLabels(page, file);
		await close(page);
	}
});

await test('shows as an image', async () => {
	const html = join(folder, 'image.html');
	writeFileSync(html, '<img src="plain.svg">');
	const page = await open(html);
	equal(await page.evaluate(() => document.images[0].naturalWidth), 1200, 'width');
	await close(page);
});

await test('works inside an HTML page', async () => {
	const html = join(folder, 'inline.html');
	const text = readFileSync(nasty, 'utf8').replace(/^<\?xml.*\n/, '');
	writeFileSync(html, `<!doctype html><meta charset="utf-8"><body>${text}</body>`);
	const page = await open(html);
	await page.locator('input').fill('leaf_1$');
	equal(await found(page), (100 / NASTY.length).toFixed(2) + ' % matched', 'search');
	await close(page);
});

await test('a differential graph tells the change', async () => {
	const lines = [[['main', 'grew'], 100, 300], [['main', 'shrank'], 300, 100]];
	let page = await open(picture('diff', lines, ['--diff']));
	await pointAt(page, 'grew');
	check((await status(page)).includes('+50.00 points (100 → 300 samples)'), await status(page));
	await pointAt(page, 'shrank');
	check((await status(page)).includes('−50.00 points (300 → 100 samples)'), await status(page));
	await close(page);
	page = await open(picture('negated', lines, ['--diff', '--negate']));
	await pointAt(page, 'grew');
	check((await status(page)).includes('−50.00 points (300 → 100 samples)'), await status(page));
	await close(page);
});

await test('frames too narrow at first appear on zoom', async () => {
	const lines = [[['main', 'big'], 999000]];
	for (let i = 0; i < 20; i++)
		lines.push([['main', 'small', 'tiny_' + i], 50]);
	const page = await open(picture('deep', lines, ['--min', '0.001']));
	equal(await frame(page, 'tiny_3'), null, 'seen too early');
	await page.locator('input').fill('tiny_3');
	equal(await found(page), '0.01 % matched', 'searched all the same');
	await page.goto('about:blank');
	await page.goto('file://' + join(folder, 'deep.svg') + '#zoom=3');
	near((await frame(page, 'tiny_3')).width, 1176 / 20, 1, 'zoomed');
	await close(page);
});

await test('no samples', async () => {
	const page = await open(picture('empty', []));
	check((await page.evaluate(() => document.documentElement.textContent)).includes('no samples'),
		'says nothing');
	await close(page);
});

await browser.close();
rmSync(folder, { recursive: true });
process.exit(failures ? 1 : 0);
