// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Records of perf.data. Each is appended by one call of writev(), so processes do not disturb each other. The file is
 * open only during that call: the program has the same file descriptors as QEMU, and may close any.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "args.h"
#include "pt_parts.h"

enum {
	RECORD_COMM = 3,
	RECORD_EXIT = 4,
	RECORD_FORK = 7,
	RECORD_MMAP2 = 10,
	RECORD_AUXTRACE = 71,
	MISC_USER = 2,
	MISC_EXEC = 1 << 13,
};

#define PATH_SIZE 4096

struct header {
	uint32_t type;
	uint16_t misc, size;
};

struct sample_id { /* of EMULATE_SAMPLE_TYPE */
	struct pt_id id;
	uint64_t time, event;
};

static struct emulate_queues *queues;

struct pt_id pt_id(void)
{
	return (struct pt_id){ (uint32_t)getpid(), (uint32_t)syscall(SYS_gettid) };
}

/* Maps a file of the folder. Returns NULL if it cannot. */
static void *map_file(const char *name, size_t size, int flags)
{
	char path[PATH_SIZE];
	void *at = MAP_FAILED;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", args.parts, name);
	fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
	if (fd >= 0 && ftruncate(fd, (off_t)size) == 0)
		at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	return at == MAP_FAILED ? NULL : at;
}

int pt_file_open(void)
{
	if (!args.parts || access(args.out, W_OK)) {
		api_say("mode=pt is for `kscope record emulate`, which prepares its files");
		return -1;
	}
	queues = map_file(EMULATE_QUEUES, sizeof(*queues), 0);
	if (!queues) {
		api_say("%s/%s: %m", args.parts, EMULATE_QUEUES);
		return -1;
	}
	return 0;
}

/* A thread has the queue of an earlier one with its tid: of the program that called execve(), or one that ended. */
static bool find_queue(uint32_t tid, uint32_t *queue)
{
	uint32_t nr = atomic_load((_Atomic uint32_t *)&queues->nr);

	for (*queue = 0; *queue < nr && *queue < EMULATE_THREADS_MAX; ++*queue) {
		if (atomic_load((_Atomic uint32_t *)&queues->tids[*queue]) == tid)
			return true;
	}
	*queue = atomic_fetch_add((_Atomic uint32_t *)&queues->nr, 1);
	if (*queue >= EMULATE_THREADS_MAX)
		return false;
	atomic_store((_Atomic uint32_t *)&queues->tids[*queue], tid);
	return true;
}

static void part_name(char name[64], uint32_t tid)
{
	snprintf(name, 64, EMULATE_PART "%u", tid);
}

struct emulate_part *pt_part_open(void)
{
	uint32_t tid = pt_id().tid, queue;
	struct emulate_part *part;
	char name[64];

	if (!find_queue(tid, &queue))
		return NULL;
	part_name(name, tid);
	part = map_file(name, sizeof(*part), O_CREAT);
	if (!part)
		return NULL;
	part->offset = queues->offsets[queue];
	part->queue = queue;
	part->tid = tid;
	if (part->used) /* of a thread that execve() ended */
		pt_part_flush(part);
	part->tsc = pt_tsc(pt_now());
	return part;
}

static void write_all(struct iovec *parts, int nr)
{
	static _Atomic bool failed;
	int file = open(args.out, O_WRONLY | O_APPEND | O_CLOEXEC);

	if ((file < 0 || writev(file, parts, nr) < 0) && !atomic_exchange(&failed, true))
		api_say("%s: %m", args.out);
	if (file >= 0)
		close(file);
}

void pt_part_flush(struct emulate_part *part)
{
	struct emulate_auxtrace record = { .type = RECORD_AUXTRACE,
					   .record_size = sizeof(record),
					   .offset = part->offset,
					   .reference = part->tsc,
					   .idx = part->queue,
					   .tid = part->tid,
					   .cpu = UINT32_MAX };

	while (part->used % 8) /* a PAD packet */
		part->bytes[part->used++] = 0;
	record.size = part->used;
	if (part->used)
		write_all((struct iovec[]){ { &record, sizeof(record) },
					    { part->bytes, part->used } },
			  2);
	part->offset += part->used;
	part->used = 0;
	part->tsc = pt_tsc(pt_now());
	queues->offsets[part->queue] = part->offset;
}

void pt_part_close(struct emulate_part *part)
{
	char path[PATH_SIZE], name[64];

	pt_part_flush(part);
	part_name(name, part->tid);
	snprintf(path, sizeof(path), "%s/%s", args.parts, name);
	unlink(path);
	munmap(part, sizeof(*part));
}

/* Before that of packets that follow, which loses a fraction of a ns when it becomes ticks. */
static uint64_t time_of_record(void)
{
	return pt_now() - 2;
}

/* text: a string at the end, or NULL. */
static void put(uint32_t type, uint16_t misc, struct pt_id id, void *body, size_t size,
		const char *text)
{
	struct sample_id tail = { id, time_of_record(), EMULATE_EVENT };
	char room[PATH_SIZE + 8] = "";
	size_t length = text ? (strnlen(text, PATH_SIZE - 1) + 8) / 8 * 8 : 0;
	struct header header = { type, misc,
				 (uint16_t)(sizeof(header) + size + length + sizeof(tail)) };

	if (text)
		memcpy(room, text, strnlen(text, PATH_SIZE - 1));
	write_all((struct iovec[]){ { &header, sizeof(header) },
				    { body, size },
				    { room, length },
				    { &tail, sizeof(tail) } },
		  4);
}

void pt_file_comm(struct pt_id id, const char *comm, bool exec)
{
	put(RECORD_COMM, exec ? MISC_EXEC : 0, id, &id, sizeof(id), comm);
}

static void put_task(uint32_t type, struct pt_id id, struct pt_id parent)
{
	struct {
		uint32_t pid, ppid, tid, ptid;
		uint64_t time;
	} body = { id.pid, parent.pid, id.tid, parent.tid, time_of_record() };

	put(type, 0, id, &body, sizeof(body), NULL);
}

void pt_file_fork(struct pt_id child, struct pt_id parent)
{
	put_task(RECORD_FORK, child, parent);
}

void pt_file_exit(struct pt_id id, struct pt_id parent)
{
	put_task(RECORD_EXIT, id, parent);
}

void pt_file_map(struct pt_id id, uint64_t addr, uint64_t len, uint64_t offset, const char *path)
{
	struct {
		struct pt_id id;
		uint64_t addr, len, offset;
		uint32_t major, minor;
		uint64_t inode, generation;
		uint32_t prot, flags;
	} body = { id, addr, len, offset, 0, 0, 0, 0, PROT_READ | PROT_EXEC, MAP_PRIVATE };

	put(RECORD_MMAP2, MISC_USER, id, &body, sizeof(body), path);
}
