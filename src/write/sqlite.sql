-- SPDX-License-Identifier: GPL-2.0-or-later
-- The schema of the writer `sqlite`. SQLite stores each statement in the database, with the comments inside it.
-- Views are plain SQL that DuckDB understands, too.

PRAGMA application_id = 1802724208; -- 0x6b736370: kscp
PRAGMA user_version = 1; -- of this schema

CREATE TABLE facts ( -- about the recording: arch, hostname, cmdline...
	id INTEGER PRIMARY KEY,
	key TEXT NOT NULL,
	value TEXT NOT NULL
);

CREATE TABLE events ( -- what triggers samples, or was counted
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL, -- such as cycles
	unit TEXT, -- of weights; NULL: they count this event
	period INTEGER, -- events from one sample to the next; NULL: varies, or unknown
	frequency INTEGER -- samples per second; NULL: varies, or unknown
);

CREATE TABLE tasks ( -- threads; a thread that changes its name has a row for each name
	id INTEGER PRIMARY KEY,
	pid INTEGER, -- NULL: unknown
	tid INTEGER, -- NULL: unknown
	name TEXT NOT NULL -- [no name]: unknown
);

CREATE TABLE binaries (
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL, -- the last part of the path
	path TEXT NOT NULL,
	build_id TEXT, -- in hexadecimal; NULL: unknown
	kernel INTEGER NOT NULL -- 1: the kernel or a part of it
);

CREATE TABLE functions ( -- a row for each name in each binary, as in kscope report
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL,
	binary_name TEXT, -- NULL: unknown
	known INTEGER NOT NULL -- 0: no symbol; the name may contain the address
);

CREATE TABLE frames ( -- places in functions; an inlined function has frames of its own
	id INTEGER PRIMARY KEY,
	function INTEGER NOT NULL REFERENCES functions,
	file TEXT, -- source code; NULL: unknown
	line INTEGER, -- NULL: unknown
	inlined INTEGER NOT NULL, -- 1: into the function of the parent stack
	kernel INTEGER NOT NULL, -- 1: code of the kernel
	binary_id INTEGER REFERENCES binaries, -- NULL: unknown
	address INTEGER -- in the binary as linked, or without one in memory; negative from 2^63 on: 2^64 less
);

CREATE TABLE stacks ( -- a prefix tree: a stack is a frame below the stack of its caller
	id INTEGER PRIMARY KEY,
	parent INTEGER REFERENCES stacks, -- NULL: the outermost frame
	frame INTEGER NOT NULL REFERENCES frames,
	depth INTEGER NOT NULL, -- 0: the outermost frame
	outermost INTEGER NOT NULL -- 0: a caller is the same function (recursion)
);

CREATE TABLE samples ( -- a trace has slices instead
	id INTEGER PRIMARY KEY, -- in the order of the recording
	time INTEGER, -- in ns; NULL: unknown
	cpu INTEGER, -- NULL: unknown
	task INTEGER NOT NULL REFERENCES tasks,
	event INTEGER NOT NULL REFERENCES events,
	samples INTEGER NOT NULL, -- 1, or more in data that has only sums
	weight INTEGER NOT NULL, -- in the unit of the event
	stack INTEGER NOT NULL REFERENCES stacks
);

CREATE TABLE slices ( -- of a trace: the calls of each task, and what each cpu did
	id INTEGER PRIMARY KEY, -- in the order in which they began
	parent INTEGER REFERENCES slices, -- the caller; NULL: none, or not known at that time
	depth INTEGER NOT NULL, -- the number of callers
	kind TEXT NOT NULL, -- begin, call, jump, trap, syscall or inline; for a cpu: run, gap or interrupts off
	task INTEGER REFERENCES tasks, -- NULL: a gap of a whole cpu
	cpu INTEGER, -- NULL: unknown
	function INTEGER REFERENCES functions, -- for interrupts off: where this began; NULL: run and gap
	began INTEGER NOT NULL, -- in ns
	ended INTEGER NOT NULL,
	time INTEGER NOT NULL, -- ended - began; of a caller from before the trace: from the first return to it
	self_time INTEGER NOT NULL, -- `time` without the callees
	running INTEGER, -- the part of `time` in which the task ran; NULL: unknown
	self_running INTEGER,
	instructions INTEGER, -- executed during `time`; NULL: unknown
	self_instructions INTEGER,
	cycles INTEGER, -- NULL: unknown
	self_cycles INTEGER,
	outermost INTEGER NOT NULL, -- 0: inside another call of the same function (recursion)
	began_before INTEGER NOT NULL, -- 1: it began before the trace or the selection
	goes_on INTEGER NOT NULL -- 1: it had not ended when the trace or the selection did
);

CREATE TABLE notes ( -- values that programs and cpus wrote to a trace of Intel PT
	id INTEGER PRIMARY KEY,
	time INTEGER NOT NULL, -- in ns
	cpu INTEGER, -- NULL: unknown
	task INTEGER NOT NULL REFERENCES tasks,
	kind TEXT NOT NULL, -- ptwrite, mwait, pwre, pwrx, exstop or cbr
	value INTEGER NOT NULL, -- the value, or the packet's payload; negative from 2^63 on: 2^64 less
	function INTEGER REFERENCES functions -- NULL: unknown
);

CREATE TABLE counters ( -- how often an event happened on a cpu since the recording began
	id INTEGER PRIMARY KEY,
	time INTEGER, -- in ns; NULL: unknown
	cpu INTEGER, -- NULL: unknown
	event INTEGER NOT NULL REFERENCES events,
	value INTEGER NOT NULL
);

CREATE TABLE allocators ( -- with the problems that kscope alloc finds
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL,
	double_frees INTEGER NOT NULL,
	unknown_frees INTEGER NOT NULL, -- of blocks that were allocated before the recording, or never
	unknown_resizes INTEGER NOT NULL,
	overlaps INTEGER NOT NULL, -- new blocks at the place of a live one: a free is missing
	guesses INTEGER NOT NULL -- resized blocks whose new address the data lacks
);

CREATE TABLE allocations ( -- each change of a block
	id INTEGER PRIMARY KEY,
	time INTEGER, -- in ns; NULL: unknown
	cpu INTEGER, -- NULL: unknown
	task INTEGER NOT NULL REFERENCES tasks,
	allocator INTEGER NOT NULL REFERENCES allocators,
	op TEXT NOT NULL, -- new, resize, free, or overlap: a new block took its place, so its free is missing
	block INTEGER, -- its number; NULL: a free without a known block
	address INTEGER NOT NULL, -- negative from 2^63 on: 2^64 less
	was INTEGER NOT NULL, -- bytes before
	now INTEGER NOT NULL, -- bytes after
	stack INTEGER NOT NULL REFERENCES stacks, -- that changed the block
	owner INTEGER NOT NULL REFERENCES stacks -- that allocated the block
);

CREATE TABLE losses ( -- where data is missing
	id INTEGER PRIMARY KEY,
	time INTEGER, -- in ns; NULL: unknown
	cpu INTEGER, -- NULL: unknown
	task INTEGER REFERENCES tasks, -- NULL: unknown
	samples INTEGER NOT NULL, -- or parts of a trace; 0: only the bytes are known
	bytes INTEGER NOT NULL,
	damage INTEGER NOT NULL -- 1: the input is damaged; 0: lost while recording
);

CREATE VIEW event_totals AS
	SELECT events.id AS event_id, events.name AS event, events.unit AS unit,
		sum(samples.samples) AS samples, sum(samples.weight) AS weight
	FROM samples JOIN events ON events.id = samples.event
	GROUP BY events.id, events.name, events.unit;

CREATE VIEW function_totals AS -- a recursive function counts once in a total
	WITH RECURSIVE up(event, parent, frame, self, counts, samples, weight) AS (
		SELECT leaves.event, stacks.parent, stacks.frame, 1, stacks.outermost, leaves.samples, leaves.weight
		FROM (
			SELECT event, stack, sum(samples) AS samples, sum(weight) AS weight FROM samples GROUP BY event, stack
		) AS leaves JOIN stacks ON stacks.id = leaves.stack
		UNION ALL
		SELECT up.event, stacks.parent, stacks.frame, 0, stacks.outermost, up.samples, up.weight
		FROM up JOIN stacks ON stacks.id = up.parent
	), frame_totals(event, frame, self_samples, total_samples, self_weight, total_weight) AS (
		SELECT event, frame, sum(self * samples), sum(counts * samples), sum(self * weight), sum(counts * weight)
		FROM up GROUP BY event, frame
	)
	SELECT events.name AS event, functions.name AS function, functions.binary_name AS binary_name,
		sum(frame_totals.self_samples) AS self_samples, sum(frame_totals.total_samples) AS total_samples,
		sum(frame_totals.self_weight) AS self_weight, sum(frame_totals.total_weight) AS total_weight
	FROM frame_totals JOIN frames ON frames.id = frame_totals.frame JOIN events ON events.id = frame_totals.event
		JOIN functions ON functions.id = frames.function
	GROUP BY events.id, events.name, functions.id, functions.name, functions.binary_name;

CREATE VIEW line_totals AS -- without callees
	WITH leaves(event, stack, samples, weight) AS (
		SELECT event, stack, sum(samples), sum(weight) FROM samples GROUP BY event, stack
	)
	SELECT events.name AS event, functions.name AS function, functions.binary_name AS binary_name,
		frames.file AS file, frames.line AS line, sum(leaves.samples) AS samples, sum(leaves.weight) AS weight
	FROM leaves JOIN events ON events.id = leaves.event JOIN stacks ON stacks.id = leaves.stack
		JOIN frames ON frames.id = stacks.frame JOIN functions ON functions.id = frames.function
	GROUP BY events.id, events.name, functions.id, functions.name, functions.binary_name, frames.file, frames.line;

CREATE VIEW task_totals AS
	SELECT events.name AS event, tasks.pid AS pid, tasks.name AS task,
		sum(samples.samples) AS samples, sum(samples.weight) AS weight
	FROM samples JOIN events ON events.id = samples.event JOIN tasks ON tasks.id = samples.task
	GROUP BY events.id, events.name, tasks.pid, tasks.name;

CREATE VIEW cpu_totals AS
	SELECT events.name AS event, samples.cpu AS cpu, sum(samples.samples) AS samples,
		sum(samples.weight) AS weight
	FROM samples JOIN events ON events.id = samples.event
	GROUP BY events.id, events.name, samples.cpu;

CREATE VIEW samples_named AS
	SELECT samples.id AS id, samples.time AS time, samples.cpu AS cpu, tasks.pid AS pid, tasks.tid AS tid,
		tasks.name AS task, events.name AS event, samples.samples AS samples, samples.weight AS weight,
		functions.name AS function, functions.binary_name AS binary_name, frames.file AS file, frames.line AS line,
		CASE WHEN frames.address IS NOT NULL THEN printf('0x%x', frames.address) END AS address, samples.stack AS stack
	FROM samples JOIN tasks ON tasks.id = samples.task JOIN events ON events.id = samples.event
		JOIN stacks ON stacks.id = samples.stack JOIN frames ON frames.id = stacks.frame
		JOIN functions ON functions.id = frames.function;

CREATE VIEW stack_texts AS -- the stacks of samples as text: outermost;...;innermost
	WITH RECURSIVE path(stack, parent, text) AS (
		SELECT stacks.id, stacks.parent, replace(functions.name, ';', ':')
		FROM stacks JOIN frames ON frames.id = stacks.frame JOIN functions ON functions.id = frames.function
		WHERE stacks.id IN (SELECT stack FROM samples)
		UNION ALL
		SELECT path.stack, stacks.parent, replace(functions.name, ';', ':') || ';' || path.text
		FROM path JOIN stacks ON stacks.id = path.parent JOIN frames ON frames.id = stacks.frame
			JOIN functions ON functions.id = frames.function
	), whole AS MATERIALIZED (
		SELECT stack, text FROM path WHERE parent IS NULL
	)
	SELECT stack, text FROM whole;

CREATE VIEW folded AS -- folded stacks, the input of flame graph tools
	SELECT leaves.event AS event, stack_texts.text AS stack, sum(leaves.samples) AS samples,
		sum(leaves.weight) AS weight
	FROM (
		SELECT events.name AS event, samples.stack AS stack, sum(samples.samples) AS samples,
			sum(samples.weight) AS weight
		FROM samples JOIN events ON events.id = samples.event
		GROUP BY events.id, events.name, samples.stack
	) AS leaves JOIN stack_texts ON stack_texts.stack = leaves.stack
	GROUP BY leaves.event, stack_texts.text;

CREATE VIEW slices_named AS
	SELECT slices.id AS id, slices.parent AS parent, slices.depth AS depth, slices.kind AS kind, tasks.pid AS pid,
		tasks.tid AS tid, tasks.name AS task, slices.cpu AS cpu, functions.name AS function,
		functions.binary_name AS binary_name, slices.began AS began, slices.ended AS ended, slices.time AS time,
		slices.self_time AS self_time, slices.instructions AS instructions
	FROM slices LEFT JOIN tasks ON tasks.id = slices.task LEFT JOIN functions ON functions.id = slices.function;

CREATE VIEW call_durations AS -- the numbers of kscope calls; a recursive function counts once in a total
	SELECT functions.name AS function, functions.binary_name AS binary_name,
		CASE WHEN slices.kind = 'inline' THEN 1 ELSE 0 END AS inlined,
		sum(1 - slices.began_before) AS calls,
		sum(CASE WHEN slices.began_before = 0 THEN slices.goes_on ELSE 0 END) AS open,
		sum(slices.self_time) AS self_time,
		sum(slices.time * slices.outermost) AS total_time,
		sum(slices.self_running) AS self_running,
		sum(slices.running * slices.outermost) AS total_running,
		sum(slices.self_instructions) AS self_instructions,
		sum(slices.instructions * slices.outermost) AS total_instructions,
		min(CASE WHEN slices.began_before + slices.goes_on = 0 THEN slices.time END) AS min,
		max(CASE WHEN slices.began_before + slices.goes_on = 0 THEN slices.time END) AS max
	FROM slices JOIN functions ON functions.id = slices.function
	WHERE slices.kind <> 'interrupts off'
	GROUP BY functions.id, functions.name, functions.binary_name, CASE WHEN slices.kind = 'inline' THEN 1 ELSE 0 END;

CREATE VIEW allocator_totals AS -- the numbers of kscope alloc
	SELECT allocators.name AS allocator,
		sum(CASE WHEN op = 'new' THEN 1 ELSE 0 END) AS allocs,
		sum(CASE WHEN op = 'resize' THEN 1 ELSE 0 END) AS resizes,
		sum(CASE WHEN op = 'free' THEN 1 ELSE 0 END) AS frees,
		sum(CASE WHEN now > was THEN now - was ELSE 0 END) AS total_bytes,
		sum(now - was) AS live_bytes,
		sum(CASE WHEN op = 'new' THEN 1 WHEN block IS NULL OR op = 'resize' THEN 0 ELSE -1 END) AS live_blocks
	FROM allocations JOIN allocators ON allocators.id = allocations.allocator
	GROUP BY allocators.id, allocators.name;

CREATE VIEW allocations_live AS -- what is in use at the end, by the stack that allocated it
	SELECT allocators.name AS allocator, owner AS stack, sum(now - was) AS bytes,
		sum(CASE WHEN op = 'new' THEN 1 WHEN op = 'resize' THEN 0 ELSE -1 END) AS blocks
	FROM allocations JOIN allocators ON allocators.id = allocations.allocator
	WHERE block IS NOT NULL
	GROUP BY allocators.id, allocators.name, owner
	HAVING sum(CASE WHEN op = 'new' THEN 1 WHEN op = 'resize' THEN 0 ELSE -1 END) > 0;

CREATE VIEW lost AS
	SELECT coalesce(sum(samples), 0) AS samples, coalesce(sum(bytes), 0) AS bytes, count(*) AS places,
		coalesce(sum(damage), 0) AS damaged_places
	FROM losses;
