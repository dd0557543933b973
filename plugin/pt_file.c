// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A thread's records of perf.data, see wire/emulate.h. The file is open only while a record is written: the program
 * has the same file descriptors as QEMU, and may close any.
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

struct pt_id pt_id(void)
{
	return (struct pt_id){ (uint32_t)getpid(), (uint32_t)syscall(SYS_gettid) };
}

int pt_file_check(void)
{
	if (!args.parts || access(args.parts, W_OK)) {
		api_say("mode=pt is for `kscope record emulate`, which makes a folder for it");
		return -1;
	}
	return 0;
}

static void path_of(char path[PATH_SIZE], const char *kind, const struct pt_file *file)
{
	snprintf(path, PATH_SIZE, "%s/%s%u", args.parts, kind, file->id.tid);
}

/* Without the thread's files, the rest of it is not in the trace. */
static void give_up(struct pt_file *file)
{
	static _Atomic bool said;

	if (!atomic_exchange(&said, true))
		api_say("cannot write the trace of thread %u to %s: %m", file->id.tid, args.parts);
	file->part = NULL;
}

static struct emulate_part *map_part(const char *path, int flags)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
	void *at = MAP_FAILED;

	if (fd >= 0 && (!flags || ftruncate(fd, sizeof(struct emulate_part)) == 0))
		at = mmap(NULL, sizeof(struct emulate_part), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  0);
	if (fd >= 0)
		close(fd);
	return at == MAP_FAILED ? NULL : at;
}

/* keeps: the packets so far are not in this record */
static void write_record(struct pt_file *file, const struct iovec *parts, int nr, bool keeps)
{
	char path[PATH_SIZE];
	ssize_t size = 0;
	int fd;

	if (!file->part)
		return;
	path_of(path, EMULATE_TRACE, file);
	for (int i = 0; i < nr; i++)
		size += (ssize_t)parts[i].iov_len;
	fd = api_above_standard(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	if (fd < 0 || pwritev(fd, parts, nr, (off_t)file->written) != size) {
		give_up(file);
	} else {
		struct emulate_state now =
			keeps ? *emulate_state(file->part) : (struct emulate_state){ 0 };

		now.written = file->written += (uint64_t)size;
		now.tsc = file->tsc;
		emulate_store(file->part, &now);
	}
	if (fd >= 0)
		close(fd);
}

static void write_packets(struct pt_file *file, uint64_t size)
{
	uint8_t *bytes = file->part->bytes;
	struct emulate_auxtrace record = { .type = RECORD_AUXTRACE,
					   .record_size = sizeof(record),
					   .size = size,
					   .offset = pt_now(),
					   .reference = file->tsc,
					   .tid = file->id.tid,
					   .cpu = UINT32_MAX };

	if (!size)
		return;
	file->tsc = pt_tsc(pt_now());
	write_record(file, (struct iovec[]){ { &record, sizeof(record) }, { bytes, size } }, 2,
		     false);
}

/*
 * The files may be those of an earlier thread with this tid: of the program that called execve(), or of one that has
 * ended.
 */
bool pt_file_open(struct pt_file *file)
{
	char path[PATH_SIZE];
	struct stat stat;

	*file = (struct pt_file){ .id = pt_id() };
	path_of(path, EMULATE_PART, file);
	file->part = map_part(path, 0);
	if (file->part) {
		file->written = emulate_state(file->part)->written;
		file->tsc = emulate_state(file->part)->tsc;
		write_packets(file, emulate_end(file->part));
	} else {
		file->part = map_part(path, O_CREAT);
		path_of(path, EMULATE_TRACE, file);
		file->written = lstat(path, &stat) == 0 ? (uint64_t)stat.st_size : 0;
	}
	if (!file->part) {
		give_up(file);
		return false;
	}
	file->tsc = pt_tsc(pt_now());
	emulate_store(file->part,
		      &(struct emulate_state){ .written = file->written, .tsc = file->tsc });
	return true;
}

void pt_file_close(struct pt_file *file)
{
	char path[PATH_SIZE];

	if (!file->part)
		return;
	path_of(path, EMULATE_PART, file);
	unlink(path);
	munmap(file->part, sizeof(*file->part));
	file->part = NULL;
}

void pt_file_flush(struct pt_file *file, struct pt_packets *packets, uint64_t ip)
{
	struct emulate_part *part = file->part;

	pt_flush_tnt(packets);
	while ((packets->at - part->bytes) % 8)
		*packets->at++ = 0; /* PAD */
	write_packets(file, (uint64_t)(packets->at - part->bytes));
	packets->at = part->bytes;
	if (file->part)
		pt_file_keep(file, packets, ip);
}

/* Before that of packets that follow, which loses a fraction of a ns when it becomes ticks. */
static uint64_t time_of_record(void)
{
	return pt_now() - 2;
}

/* text: a string at the end, or NULL. */
static void put(struct pt_file *file, uint32_t type, uint16_t misc, void *body, size_t size,
		const char *text)
{
	struct sample_id tail = { file->id, time_of_record(), EMULATE_EVENT };
	char room[PATH_SIZE + 8] = "";
	size_t length = text ? (strnlen(text, PATH_SIZE - 1) + 8) / 8 * 8 : 0;
	struct header header = { type, misc,
				 (uint16_t)(sizeof(header) + size + length + sizeof(tail)) };

	if (text)
		memcpy(room, text, strnlen(text, PATH_SIZE - 1));
	write_record(file,
		     (struct iovec[]){ { &header, sizeof(header) },
				       { body, size },
				       { room, length },
				       { &tail, sizeof(tail) } },
		     4, true);
}

void pt_file_comm(struct pt_file *file, const char *comm, bool exec)
{
	put(file, RECORD_COMM, exec ? MISC_EXEC : 0, &file->id, sizeof(file->id), comm);
}

static void put_task(struct pt_file *file, uint32_t type, struct pt_id parent)
{
	struct {
		uint32_t pid, ppid, tid, ptid;
		uint64_t time;
	} body = { file->id.pid, parent.pid, file->id.tid, parent.tid, time_of_record() };

	put(file, type, 0, &body, sizeof(body), NULL);
}

void pt_file_fork(struct pt_file *file, struct pt_id parent)
{
	put_task(file, RECORD_FORK, parent);
}

void pt_file_exit(struct pt_file *file, struct pt_id parent)
{
	put_task(file, RECORD_EXIT, parent);
}

void pt_file_map(struct pt_file *file, uint64_t addr, uint64_t len, uint64_t offset,
		 const char *path)
{
	struct {
		struct pt_id id;
		uint64_t addr, len, offset;
		uint32_t major, minor;
		uint64_t inode, generation;
		uint32_t prot, flags;
	} body = { file->id, addr, len, offset, 0, 0, 0, 0, PROT_READ | PROT_EXEC, MAP_PRIVATE };

	put(file, RECORD_MMAP2, MISC_USER, &body, sizeof(body), path);
}
