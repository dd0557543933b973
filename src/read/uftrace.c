// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * uftrace: the data folder of `uftrace record`, of QEMU's plugin of this name, and of our own writer. Records of
 * all threads become calls, in order of time.
 *
 * Addresses have 48 bits. One in the upper half that no map covers is in a kernel that QEMU's plugin traced: it
 * gets its upper bits back, and --kernel names it. uftrace's own kernel data (ftrace) and its events are skipped.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/uftrace_file.h"
#include "base/log.h"
#include "base/text.h"
#include "read/bare.h"
#include "read/uftrace_parts.h"

#define KERNEL_DATA 4 /* a feature: functions of the running Linux */
#define HALF ((uint64_t)1 << (UFTRACE_ADDRESS_BITS - 1))
#define BUFFERS ((size_t)16 << 20) /* bytes, of all threads */
#define BUFFER_MIN ((size_t)16 << 10)
#define MAX_THREADS ((size_t)1 << 18)
#define BUFFER_MAX ((size_t)256 << 10)

struct uftrace {
	struct uftrace_tasks tasks;
	char *folder; /* with a slash at its end */
	struct uftrace_thread *threads;
	size_t nr, cap;
	uint32_t *heap; /* of threads with a record, by its time */
	size_t nr_heap;
	struct hash thread_by_tid, session_by_pid;
	char *cmdline, *host, *release; /* NULL: unknown */
	unsigned told;			/* of them */
	size_t entry;			/* the next one of tasks */
	/* A session whose maps are being emitted, and how many are left: */
	const struct uftrace_session *session;
	size_t map;
	uint32_t pid;
	uint64_t time;
	struct uftrace_map library; /* that is being emitted, if it has a path */
	struct event lost;	    /* by damage; to be emitted, if its kind is that */
	bool has_kernel;
};

void uftrace_damage(struct reader *r, const char *path, uint64_t offset, uint64_t bytes,
		    const char *why)
{
	struct uftrace *u = r->priv;
	uint64_t before = u->lost.lost.bytes;

	reader_damage_in(r, &u->lost, path, offset, 0, bytes, why);
	u->lost.lost.bytes += before;
}

static int uftrace_probe(const uint8_t *head, size_t len)
{
	return len >= sizeof(UFTRACE_MAGIC) && !memcmp(head, UFTRACE_MAGIC, sizeof(UFTRACE_MAGIC))
		       ? 64
		       : 0;
}

/* The file `info` */

static uint64_t get(const uint8_t *at, unsigned len)
{
	uint64_t value = 0;

	while (len-- > 0)
		value = value << 8 | at[len];
	return value;
}

static int read_header(struct reader *r)
{
	const char *path = r->in->path;
	size_t have;
	const uint8_t *head = in_peek(r->in, UFTRACE_HEADER, &have);
	uint64_t version;

	if (!uftrace_probe(head, have))
		return err_at(&r->err, ERR_INPUT, path, 0, "not an info file of uftrace");
	if (have < UFTRACE_HEADER)
		return err_at(&r->err, ERR_INPUT, path, have, "the file ends inside its header");
	if (head[UFTRACE_AT_ENDIAN] != 1)
		return err_at(&r->err, ERR_INPUT, path, UFTRACE_AT_ENDIAN,
			      "big-endian data is not supported");
	version = get(head + UFTRACE_AT_VERSION, 4);
	if (version < UFTRACE_VERSION_MIN || version > UFTRACE_VERSION)
		return err_at(&r->err, ERR_INPUT, path, UFTRACE_AT_VERSION,
			      "version %" PRIu64 " is not supported", version);
	if (get(head + UFTRACE_AT_FEATURES, 8) & KERNEL_DATA)
		log_note("%s: skipped the kernel functions that ftrace recorded", path);
	in_skip(r->in, UFTRACE_HEADER);
	return 0;
}

/* Returns -1 if there are too many. */
static int add_thread(struct uftrace *u, uint32_t tid, uint32_t pid)
{
	struct hash_key key = { tid, 0 };
	uint32_t *at;

	if (u->nr == MAX_THREADS && !hash_get(&u->thread_by_tid, key))
		return -1;
	at = hash_at(&u->thread_by_tid, key);
	if (!*at) {
		GROW(u->threads, u->nr + 1, u->cap);
		u->threads[u->nr++] = (struct uftrace_thread){
			.tid = tid,
			.path = xasprintf("%s%" PRIu32 ".dat", u->folder, tid),
			.store = u->tasks.store,
		};
		*at = (uint32_t)u->nr;
	}
	u->threads[*at - 1].pid = pid;
	return 0;
}

/* Returns how many threads there are. */
static uint64_t read_tids(struct reader *r, const char *at, const char *end, uint64_t offset)
{
	uint64_t nr = 0;

	for (; at < end; nr++) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		const char *stop = comma ? comma : end;
		uint32_t tid;

		if (!text_u32(at, (size_t)(stop - at), &tid) || add_thread(r->priv, tid, tid) < 0) {
			uftrace_damage(r, r->in->path, offset, (uint64_t)(end - at),
				       "this is not a list of threads, or there are too many");
			return nr;
		}
		at = stop + 1;
	}
	return nr;
}

/* Sets *value to the rest of a line that begins with `key`. */
static void read_fact(const char *line, size_t len, const char *key, char **value)
{
	size_t skip = strlen(key);

	if (*value || len <= skip || strncmp(line, key, skip) != 0)
		return;
	*value = xstrndup(line + skip, len - skip);
}

static bool begins(const char *line, size_t len, const char *key)
{
	return len >= strlen(key) && !strncmp(line, key, strlen(key));
}

static void read_info(struct reader *r)
{
	static const char tids[] = "taskinfo:tids=", count[] = "taskinfo:nr_tid=";
	struct uftrace *u = r->priv;
	uint64_t offset = in_offset(r->in), nr = 0, want = UINT64_MAX;
	const char *line;
	size_t len;

	for (; text_line(r->in, &line, &len); offset = in_offset(r->in)) {
		if (!text_line_ended(r->in))
			uftrace_damage(r, r->in->path, offset, 0, TEXT_CUT);
		read_fact(line, len, "cmdline:", &u->cmdline);
		read_fact(line, len, "osinfo:hostname=", &u->host);
		read_fact(line, len, "osinfo:kernel=Linux ", &u->release);
		read_fact(line, len, "osinfo:kernel=", &u->release);
		if (begins(line, len, count))
			text_u64(line + strlen(count), len - strlen(count), &want);
		else if (begins(line, len, tids))
			nr += read_tids(r, line + strlen(tids), line + len, offset);
	}
	if (nr != want)
		uftrace_damage(r, r->in->path, offset, 0,
			       "the number of threads does not match the list of threads");
}

/* Threads */

/* The order of the heap: by time, then by tid, so that the result does not depend on the heap. */
static bool is_before(const struct uftrace *u, uint32_t a, uint32_t b)
{
	const struct uftrace_thread *x = &u->threads[a], *y = &u->threads[b];

	return x->time != y->time ? x->time < y->time : x->tid < y->tid;
}

static void swap(uint32_t *a, uint32_t *b)
{
	uint32_t c = *a;

	*a = *b;
	*b = c;
}

static void sift_down(struct uftrace *u)
{
	for (size_t at = 0, child; (child = 2 * at + 1) < u->nr_heap; at = child) {
		if (child + 1 < u->nr_heap && is_before(u, u->heap[child + 1], u->heap[child]))
			child++;
		if (!is_before(u, u->heap[child], u->heap[at]))
			return;
		swap(&u->heap[child], &u->heap[at]);
	}
}

static void add_to_heap(struct uftrace *u, uint32_t thread)
{
	size_t at = u->nr_heap++;

	u->heap[at] = thread;
	for (; at && is_before(u, u->heap[at], u->heap[(at - 1) / 2]); at = (at - 1) / 2)
		swap(&u->heap[at], &u->heap[(at - 1) / 2]);
}

/* Makes a thread's next record ready, and reports damage. False: it has no more. */
static bool make_ready(struct reader *r, struct uftrace_thread *thread)
{
	uint64_t from, bytes;
	const char *why;
	int ret;

	while ((ret = uftrace_ready(thread, &from, &bytes, &why)) < 0)
		uftrace_damage(r, thread->path, from, bytes, why);
	return ret > 0;
}

static void begin_threads(struct reader *r)
{
	struct uftrace *u = r->priv;
	size_t room = u->nr ? BUFFERS / u->nr / UFTRACE_RECORD * UFTRACE_RECORD : 0;

	room = room < BUFFER_MIN ? BUFFER_MIN : room > BUFFER_MAX ? BUFFER_MAX : room;
	u->heap = xcalloc(u->nr, sizeof(*u->heap));
	for (size_t i = 0; i < u->nr; i++) {
		u->threads[i].room = room;
		if (make_ready(r, &u->threads[i]))
			add_to_heap(u, (uint32_t)i);
	}
}

/* The first thread of the heap has taken a record. */
static void next_record(struct reader *r)
{
	struct uftrace *u = r->priv;

	if (!make_ready(r, &u->threads[u->heap[0]]))
		u->heap[0] = u->heap[--u->nr_heap];
	sift_down(u);
}

static int uftrace_open(struct reader *r)
{
	struct uftrace *u = r->priv;

	if (read_header(r) < 0)
		return -1;
	u->folder = text_folder(r->in->path);
	u->tasks.folder = u->folder;
	u->tasks.store = r->store;
	read_info(r);
	uftrace_read_tasks(&u->tasks, r);
	for (size_t i = 0; i < u->tasks.nr; i++) {
		const struct uftrace_entry *entry = &u->tasks.entries[i];

		if (entry->kind == BEGIN_THREAD)
			add_thread(u, entry->tid, entry->pid);
		else if (entry->kind == BEGIN_PROCESS)
			add_thread(u, entry->tid, entry->tid);
	}
	begin_threads(r);
	return 0;
}

static void uftrace_close(struct reader *r)
{
	struct uftrace *u = r->priv;

	for (size_t i = 0; i < u->nr; i++)
		uftrace_release_thread(&u->threads[i]);
	uftrace_release_tasks(&u->tasks);
	hash_release(&u->thread_by_tid);
	hash_release(&u->session_by_pid);
	free(u->threads);
	free(u->heap);
	free(u->folder);
	free(u->cmdline);
	free(u->host);
	free(u->release);
}

/* Events */

static bool tell_fact(struct uftrace *u, struct event *ev)
{
	const struct event_meta facts[] = { { "cmdline", u->cmdline },
					    { "hostname", u->host },
					    { "osrelease", u->release } };

	while (u->told < sizeof(facts) / sizeof(*facts)) {
		ev->kind = EVENT_META;
		ev->meta = facts[u->told++];
		if (ev->meta.value)
			return true;
	}
	return false;
}

static bool tell_lost(struct uftrace *u, struct event *ev)
{
	if (u->lost.kind != EVENT_LOST)
		return false;
	ev->kind = EVENT_LOST;
	ev->lost = u->lost.lost;
	u->lost = (struct event){ .kind = EVENT_META };
	return true;
}

static void fill_map(const struct uftrace *u, const struct uftrace_map *map, struct event *ev)
{
	ev->kind = EVENT_MAP;
	ev->time = u->time;
	ev->pid = ev->tid = u->pid;
	ev->map = (struct event_map){ .addr = map->start,
				      .len = map->end - map->start,
				      .offset = map->offset,
				      .path = map->path,
				      .names = map->names,
				      .prot = PROT_READ | PROT_EXEC,
				      .foreign = map->foreign };
}

/* Of maps that overlap, uftrace takes the first, and the world the last. */
static bool tell_map(struct uftrace *u, struct event *ev)
{
	if (u->library.path) {
		fill_map(u, &u->library, ev);
		u->library.path = NULL;
		return true;
	}
	if (!u->session || !u->map)
		return false;
	fill_map(u, &u->session->maps[--u->map], ev);
	return true;
}

/* A program starts: its name, then its maps. */
static bool begin_program(struct uftrace *u, const struct uftrace_entry *entry, struct event *ev)
{
	*hash_at(&u->session_by_pid, (struct hash_key){ entry->pid, 0 }) = entry->session;
	u->session = &u->tasks.sessions[entry->session - 1];
	u->map = u->session->nr;
	if (!entry->name)
		return tell_map(u, ev);
	ev->kind = EVENT_COMM;
	ev->pid = ev->tid = entry->pid;
	ev->comm.comm = text_last_part(entry->name);
	ev->comm.exec = true;
	return true;
}

static bool begin_process(struct uftrace *u, const struct uftrace_entry *entry, struct event *ev)
{
	uint32_t session = hash_get(&u->session_by_pid, (struct hash_key){ entry->pid, 0 });

	if (session)
		*hash_at(&u->session_by_pid, (struct hash_key){ entry->tid, 0 }) = session;
	ev->kind = EVENT_FORK;
	ev->pid = ev->tid = entry->tid;
	ev->fork = (struct event_fork){ .parent_pid = entry->pid, .parent_tid = entry->pid };
	return true;
}

static bool begin_thread(const struct uftrace_entry *entry, struct event *ev)
{
	if (entry->tid == entry->pid)
		return false;
	ev->kind = EVENT_FORK;
	ev->pid = entry->pid;
	ev->tid = entry->tid;
	ev->fork = (struct event_fork){ .parent_pid = entry->pid, .parent_tid = entry->pid };
	return true;
}

static bool name_thread(const struct uftrace *u, const struct uftrace_entry *entry,
			struct event *ev)
{
	if (!hash_get(&u->thread_by_tid, (struct hash_key){ entry->tid, 0 }) || !*entry->name)
		return false;
	ev->kind = EVENT_COMM;
	ev->pid = entry->pid;
	ev->tid = entry->tid;
	ev->comm.comm = entry->name;
	return true;
}

static bool begin_library(struct uftrace *u, const struct uftrace_entry *entry, struct event *ev)
{
	uint32_t known = hash_get(&u->thread_by_tid, (struct hash_key){ entry->tid, 0 });

	u->pid = known ? u->threads[known - 1].pid : entry->tid;
	u->library = (struct uftrace_map){ .start = entry->base, .path = entry->name };
	uftrace_measure(&u->tasks, &u->library);
	return tell_map(u, ev);
}

/* Emits what begins before the next record. */
static bool tell_entry(struct uftrace *u, struct event *ev)
{
	const struct uftrace_entry *entry = &u->tasks.entries[u->entry++];

	u->pid = entry->pid;
	u->time = entry->time;
	ev->time = entry->time;
	switch (entry->kind) {
	case BEGIN_PROGRAM: return begin_program(u, entry, ev);
	case BEGIN_PROCESS: return begin_process(u, entry, ev);
	case BEGIN_THREAD: return begin_thread(entry, ev);
	case BEGIN_LIBRARY: return begin_library(u, entry, ev);
	case BEGIN_NAME: return name_thread(u, entry, ev);
	}
	return false;
}

/* Whether the address is in the upper half, and not in a binary that uftrace knows. */
static bool is_kernel(const struct uftrace *u, const struct uftrace_thread *thread, uint64_t addr)
{
	uint32_t handle;
	const struct uftrace_session *session;

	if (!(addr & HALF))
		return false;
	handle = hash_get(&u->session_by_pid, (struct hash_key){ thread->pid, 0 });
	session = handle ? &u->tasks.sessions[handle - 1] : NULL;
	for (size_t i = 0; session && i < session->nr; i++) {
		if (addr >= session->maps[i].start && addr < session->maps[i].end)
			return false;
	}
	return true;
}

/* Emits the kernel's map before the first call in it. */
static bool tell_kernel(struct uftrace *u, const struct uftrace_thread *thread, struct event *ev)
{
	if (u->has_kernel || !is_kernel(u, thread, uftrace_address(thread->word)))
		return false;
	u->has_kernel = true;
	bare_map(ev);
	ev->map.path = "[kernel]";
	ev->map.foreign = false;
	return true;
}

static bool tell_record(struct reader *r, struct event *ev)
{
	struct uftrace *u = r->priv;
	struct uftrace_thread *thread = &u->threads[u->heap[0]];
	enum uftrace_type type = uftrace_type(thread->word);
	bool good;

	if (type <= UFTRACE_EXIT && tell_kernel(u, thread, ev))
		return true;
	ev->time = thread->time;
	ev->pid = thread->pid;
	ev->tid = thread->tid;
	if (type <= UFTRACE_EXIT) {
		ev->kind = EVENT_CALL;
		good = uftrace_take_call(thread, &ev->call);
		ev->call.context = IP_USER;
		if (is_kernel(u, thread, ev->call.function)) {
			ev->call.context = IP_KERNEL;
			ev->call.function |= ~UFTRACE_ADDRESS_MASK;
		}
	} else {
		ev->kind = EVENT_LOST;
		ev->lost = (struct event_lost){ .count = uftrace_address(thread->word) };
		good = type == UFTRACE_LOST;
		uftrace_take(thread);
	}
	if (!thread->ready)
		next_record(r);
	return good;
}

static bool has_entry(const struct uftrace *u)
{
	return u->entry < u->tasks.nr && u->nr_heap &&
	       u->tasks.entries[u->entry].time <= u->threads[u->heap[0]].time;
}

static int uftrace_next(struct reader *r, struct event *ev)
{
	static const struct event blank = {
		.time = NO_TIME, .cpu = NO_CPU, .pid = NO_TASK, .tid = NO_TASK
	};
	struct uftrace *u = r->priv;
	bool good = tell_fact(u, ev) || tell_lost(u, ev) || tell_map(u, ev);

	while (!good && (has_entry(u) || u->nr_heap)) {
		*ev = blank;
		good = has_entry(u) ? tell_entry(u, ev) : tell_record(r, ev);
	}
	return good;
}

const struct reader_ops read_uftrace = {
	.name = "uftrace",
	.about = "data folder of uftrace record, or of QEMU's uftrace plugin",
	.probe = uftrace_probe,
	.header = true,
	.folder_file = "info",
	.priv_size = sizeof(struct uftrace),
	.open = uftrace_open,
	.next = uftrace_next,
	.close = uftrace_close,
};
