// SPDX-License-Identifier: GPL-2.0-or-later
//
// The types that the modules share. Not part of the page: the modules refer to them in JSDoc.

/** A column, in the narrowest array that has room for its numbers.
 * @typedef {Uint8Array | Uint16Array | Uint32Array | Float64Array} Numbers */

/**
 * A recording, as data.js decodes it. A name, a file or a binary is an index into `strings`, and 0 is none.
 * Times are in ns (or in head.axis) from head.start on.
 *
 * If two recordings are compared, the tables are of both, and `before` has the rows of the old one.
 *
 * @typedef {object} Dataset
 * @property {Head} head
 * @property {string[]} strings
 * @property {Functions} functions
 * @property {Stacks} stacks
 * @property {Tasks} tasks
 * @property {Places} places
 * @property {Rows} rows
 * @property {Rows | null} before
 * @property {Gaps} gaps
 * @property {Slices | null} slices null until it is loaded, like the following ones
 * @property {Allocs | null} allocs
 * @property {Code | null} code
 * @property {Set<string>} blocks which of 'slices', 'allocs' and 'code' the page has
 * @property {(block: 'slices' | 'allocs' | 'code') => Promise<void>} load a block; main.js does it before it
 *   makes its view
 */

/**
 * @typedef {object} Head
 * @property {string} title
 * @property {string} start the time of the recording at which times begin, in ns, in decimal
 * @property {number} length of the recording
 * @property {'ns' | 'cycles' | 'instructions'} axis what times are
 * @property {number} quantum samples are summed up over times of this length; 0: their times are exact
 * @property {boolean} timed whether samples have times
 * @property {EventInfo[]} events
 * @property {string[]} categories
 * @property {string[]} heaps
 * @property {[string, string][]} facts about the recording, and losses
 * @property {{samples: number, damaged: number, bytes: number, places: number}} lost while recording, or by
 *   damage to the data at so many places
 * @property {number} shortest calls shorter than this are not in `slices`
 * @property {number} shorter how many such calls there were
 */

/**
 * @typedef {object} EventInfo
 * @property {string} name
 * @property {string} unit of values: 'ns', 'bytes', 'samples', 'instructions', 'cycles', ...
 * @property {boolean} weighs whether values are weights rather than numbers of samples
 * @property {number} samples
 * @property {number} weight
 */

/** @typedef {{nr: number, name: Numbers, binary: Numbers, file: Numbers,
 *   line: Numbers}} Functions */

/**
 * Stacks of functions: `parent` is the stack of the caller, which has a smaller number. 0 is the empty stack. No two
 * stacks have the same parent and function.
 *
 * @typedef {{nr: number, parent: Numbers, function: Numbers, category: Numbers,
 *   inlined: Numbers}} Stacks
 */

/** Numbers of processes and threads are one more than theirs; 0: unknown.
 * @typedef {{nr: number, name: Numbers, pid: Numbers, tid: Numbers, idle: Numbers}} Tasks */

/** Where code is: 0 is unknown. `function` has the code, with other functions inlined into it; `file` and `line` are
 * of the innermost one.
 * @typedef {{nr: number, function: Numbers, offset: Numbers, file: Numbers,
 *   line: Numbers}} Places */

/**
 * Samples, or sums of them, in order of time. `cpu` is one more than the number; 0: unknown. `place` is where the
 * innermost function was. A row of a trace lasts for `length`; else `length` is null.
 *
 * @typedef {{nr: number, time: Numbers, length: Numbers | null, cpu: Numbers,
 *   task: Numbers, event: Numbers, stack: Numbers, place: Numbers,
 *   weight: Numbers, count: Numbers}} Rows
 */

/** Where data is missing; cpu and task are one more than their numbers, 0: any.
 * @typedef {{nr: number, begin: Numbers, end: Numbers, cpu: Numbers,
 *   task: Numbers, samples: Numbers, bytes: Numbers}} Gaps */

/**
 * Calls of a trace. `track` is an index into `tracks`. A call comes after the calls in it: by their numbers,
 * parents are after their children, even if they have the same times. Of the numbers, 0 is unknown, else they are
 * one more. cut: bit 0: it began before; bit 1: it goes on.
 *
 * @typedef {object} Slices
 * @property {number} nr
 * @property {{kind: 'task' | 'cpu' | 'mask', task: number, cpu: number}[]} tracks
 * @property {string[]} kinds
 * @property {Numbers} track
 * @property {Numbers} begin
 * @property {Numbers} length
 * @property {Numbers} function one more than its number; 0: none (see `task`)
 * @property {Numbers} task of a slice of a cpu: one more than the number of the task that ran
 * @property {Numbers} kind
 * @property {Numbers} cut
 * @property {Numbers} instructions
 * @property {Numbers} ownInstructions
 * @property {Numbers} cycles
 * @property {Numbers} ownCycles
 * @property {Numbers} lines the i-cache footprint, in lines of 64 bytes
 * @property {Numbers} ownLines
 */

/** Changes of memory: of `size` bytes, and in `blocks`, which are negative for frees.
 * @typedef {{nr: number, time: Numbers, stack: Numbers, task: Numbers,
 *   heap: Numbers, size: Numbers, blocks: Numbers}} Allocs */

/**
 * Decoded when a function is first shown: it is the largest part of many files.
 *
 * @typedef {object} Code
 * @property {Map<number, {start: string, insns: {offset: number, text: string, file: number,
 *   line: number}[]}>} functions
 * @property {Map<number, {first: number, lines: string[]}[]>} sources by file
 */

/**
 * What the user has chosen, all of which is in the URL's hash.
 *
 * @typedef {object} Choice
 * @property {string} tab
 * @property {number} event
 * @property {[number, number] | null} range of time
 * @property {number | null} cpu as in rows: one more than its number
 * @property {number | null} task as in rows
 * @property {string} search a regular expression, if it is a valid one, else text; ignores case
 * @property {number | null} function the selected one, shown by all views
 * @property {number[]} hidden functions whose samples do not count
 * @property {number[]} collapsed binaries that are one frame
 * @property {number | null} focus a function: only stacks with it count, from it on
 * @property {boolean} recursion whether recursive calls are merged
 * @property {boolean} inverted flame graph and call tree by the innermost function
 * @property {'flame' | 'icicle'} direction
 * @property {'name' | 'heavy'} order of siblings in the flame graph
 * @property {'binary' | 'category' | 'name'} colours
 * @property {'light' | 'dark' | 'auto'} theme
 * @property {number[]} zoom path of functions from the root of the flame graph to the zoomed frame
 * @property {string} sort of the table of functions: 'self', 'total', 'name', 'binary', 'samples', 'change';
 *   '-' reverses
 * @property {'share' | 'absolute'} compare how recordings are compared
 */

/**
 * What all views work with; main.js makes it.
 *
 * @typedef {object} App
 * @property {Dataset} data
 * @property {Choice} choice read it, but change it only with choose()
 * @property {(patch: Partial<Choice>, replace?: boolean) => void} choose replace: no new entry in the history
 * @property {() => Tree} tree of what is selected (sums.js); cached until the choice changes
 * @property {() => Tree} inverted likewise, by the innermost function
 * @property {() => FunctionSums} sums likewise, of functions
 * @property {() => Uint8Array | null} matches by function: whether the search finds it; null: no search
 * @property {(text: string) => void} say for screen readers, and the status line
 * @property {(x: number, y: number, lines: (string | [string, string])[] | null) => void} tip
 *   shows lines beside the pointer (client coordinates): text, or a name and a value; null hides it
 */

/**
 * Sums of stacks, with all that the choice transforms. Node 0 is the root. Parents have smaller numbers.
 *
 * @typedef {object} Tree
 * @property {number} nr
 * @property {Numbers} parent
 * @property {Numbers} function of the root, which has none: 0
 * @property {Numbers} binary of a frame that is a collapsed binary: its name; else 0
 * @property {Numbers} category
 * @property {Numbers} inlined
 * @property {Uint32Array} depth of the root: 0
 * @property {Float64Array} self
 * @property {Float64Array} total
 * @property {Uint32Array} first child; 0: none
 * @property {Uint32Array} next sibling; 0: none
 * @property {Float64Array | null} beforeSelf of the old recording, if there are two
 * @property {Float64Array | null} beforeTotal
 */

/** @typedef {{self: Float64Array, total: Float64Array, samples: Float64Array,
 *   beforeSelf: Float64Array | null, beforeTotal: Float64Array | null, all: number,
 *   beforeAll: number}} FunctionSums */

/**
 * A view: a tab, or the timeline. update() gets the keys of the choice that changed since its last call; all at
 * first, and if the data changed. It is called only while the view is visible, in an animation frame.
 *
 * @typedef {object} View
 * @property {string} id
 * @property {string} label
 * @property {HTMLElement} element
 * @property {(changed: Set<string>) => void} update
 * @property {(event: KeyboardEvent) => boolean} [key] returns whether it handled the key
 * @property {(direction: 1 | -1) => void} [find] goes to the next or previous match of the search
 */

export {};
