// SPDX-License-Identifier: GPL-2.0-or-later
/* Archives: their manifest, and copying their members to temporary files. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/spool.h"
#include "base/store.h"
#include "base/store_parts.h"
#include "base/tar.h"
#include "base/text.h"

#define FIRST_LINE "kscope-archive 1"
#define MANIFEST_MAX ((uint64_t)16 << 20)
/* A file of this size gets a temporary file of its own, and is not copied again when it is opened. */
#define LARGE ((uint64_t)16 << 20)

/* ---- writing the manifest ---- */

static void put_text(struct buf *to, const char *word, const char *more, const char *text)
{
	buf_addf(to, "%s %s%s", word, more, *more ? " " : "");
	text_quote(to, text, strlen(text));
}

static void put_file(const struct store_file *file, struct buf *to)
{
	put_text(to, "file", file->member, file->path);
	buf_addc(to, '\n');
	for (size_t i = 0; i < file->nr; i++) {
		const struct store_key *key = &file->keys[i];

		if (key->kind == STORE_BUILD_ID)
			buf_addf(to, "build-id %s", key->text);
		else
			put_text(to, key->kind == STORE_NAME ? "name" : "debug", "", key->text);
		buf_addc(to, '\n');
	}
}

void store_write_manifest(const struct store *store, struct buf *to)
{
	buf_adds(to, FIRST_LINE "\n");
	for (size_t i = 0; i < store->nr_inputs; i++) {
		put_text(to, "input", "", store->inputs[i].path);
		buf_addf(to, " %s\n", store->inputs[i].format);
	}
	for (size_t i = 0; i < store->nr_options; i++) {
		put_text(to, "option", store->options[i].name, store->options[i].value);
		buf_addc(to, '\n');
	}
	for (size_t i = 0; i < store->nr; i++)
		put_file(&store->files[i], to);
}

/* ---- reading it ---- */

struct line {
	const char *at, *end;
	struct buf text; /* of the last word */
};

/* The next word of a line: bare, or in quotes. False: there is none. */
static bool next_word(struct line *line)
{
	const char *end;

	buf_clear(&line->text);
	while (line->at < line->end && *line->at == ' ')
		line->at++;
	if (line->at == line->end)
		return false;
	if (*line->at == '"') {
		end = text_quote_end(line->at, line->end);
		if (!end)
			return false;
		text_unquote(&line->text, line->at + 1, (size_t)(end - line->at - 1));
		line->at = end + 1;
		return true;
	}
	end = memchr(line->at, ' ', (size_t)(line->end - line->at));
	end = end ? end : line->end;
	buf_add(&line->text, line->at, (size_t)(end - line->at));
	line->at = end;
	return true;
}

/* The next word, kept; NULL: there is none. */
static const char *keep_word(struct store *store, struct line *line)
{
	return next_word(line) ? arena_strndup(&store->arena, line->text.data, line->text.len)
			       : NULL;
}

static bool take_input(struct store *store, struct line *line)
{
	const char *path = keep_word(store, line), *format = keep_word(store, line);

	if (!format)
		return false;
	GROW(store->inputs, store->nr_inputs + 1, store->cap_inputs);
	store->inputs[store->nr_inputs++] = (struct store_input){ path, format };
	return true;
}

static bool take_option(struct store *store, struct line *line)
{
	const char *name = keep_word(store, line), *value = keep_word(store, line);

	if (!value)
		return false;
	GROW(store->options, store->nr_options + 1, store->cap_options);
	store->options[store->nr_options++] = (struct store_option){ name, value };
	return true;
}

/* As realpath() returns it: others may append it to a folder, and must not leave that. */
static bool is_real(const char *path)
{
	if (*path != '/')
		return false;
	for (const char *part = path; *part; part += strcspn(part, "/")) {
		size_t len = strcspn(++part, "/");

		if (!len || (len == 1 && part[0] == '.') || (len == 2 && !memcmp(part, "..", 2)))
			return false;
	}
	return true;
}

static bool take_file(struct store *store, struct line *line)
{
	const char *member = keep_word(store, line), *path = keep_word(store, line);
	uint32_t *slot = path && is_real(path)
				 ? hash_at(&store->by_member, store_key_of(STORE_NAME, member))
				 : NULL;

	if (!slot || *slot)
		return false;
	store_add_file(store, path)->member = member;
	*slot = (uint32_t)store->nr;
	store_add_key(store, store->nr - 1, STORE_NAME, path);
	return true;
}

static bool take_key(struct store *store, enum store_key_kind kind, struct line *line)
{
	if (!store->nr || !next_word(line))
		return false;
	store_add_key(store, store->nr - 1, kind, line->text.data);
	return true;
}

/* Lines that a later version adds are skipped. */
static bool take_line(struct store *store, struct line *line)
{
	char word[16];

	if (!next_word(line))
		return line->at == line->end;
	snprintf(word, sizeof(word), "%s", line->text.data);
	if (!strcmp(word, "input"))
		return take_input(store, line);
	if (!strcmp(word, "option"))
		return take_option(store, line);
	if (!strcmp(word, "file"))
		return take_file(store, line);
	if (!strcmp(word, "name"))
		return take_key(store, STORE_NAME, line);
	if (!strcmp(word, "build-id"))
		return take_key(store, STORE_BUILD_ID, line);
	if (!strcmp(word, "debug"))
		return take_key(store, STORE_DEBUG, line);
	return true;
}

static int read_manifest(struct store *store, struct in *in, uint64_t size, struct err *err)
{
	uint64_t start = in_offset(in);
	const char *text, *end, *at;
	struct line line = { 0 };
	size_t have;

	if (size > MANIFEST_MAX)
		return err_at(err, ERR_INPUT, in->path, start, "the manifest has %" PRIu64 " bytes",
			      size);
	text = at = (const char *)in_peek(in, (size_t)size, &have);
	if (have < size)
		return err_at(err, ERR_INPUT, in->path, start + have, "the archive is cut short");
	end = text + size;
	if (size < strlen(FIRST_LINE) + 1 || memcmp(text, FIRST_LINE "\n", strlen(FIRST_LINE) + 1))
		return err_at(err, ERR_INPUT, in->path, start,
			      "an archive of another version of kscope");
	for (bool good = true; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		line.at = at;
		line.end = newline ? newline : end;
		good = at == text || take_line(store, &line);
		if (!good) {
			err_at(err, ERR_INPUT, in->path, start + (uint64_t)(at - text),
			       "damaged line in the manifest");
			break;
		}
		at = line.end + 1;
	}
	buf_release(&line.text);
	in_skip(in, size + tar_padding(size));
	if (!err->code && !store->nr_inputs)
		err_at(err, ERR_INPUT, in->path, start, "the manifest has no input");
	return err->code ? -1 : 0;
}

/* ---- the members ---- */

static int no_room(const struct in *in, int error, struct err *err)
{
	return err_set(err, ERR_INPUT,
		       "%s: cannot copy to a temporary file in %s: %s (set TMPDIR?)", in->path,
		       spool_folder(), strerror(error));
}

static int check_room(const struct in *in, const struct tar_member *member, int fd, struct err *err)
{
	struct statvfs at;

	if (fstatvfs(fd, &at) == 0 && member->size / at.f_frsize >= at.f_bavail)
		return err_at(err, ERR_INPUT, in->path, member->at,
			      "'%s' has %" PRIu64
			      " bytes, for which there is no room: set TMPDIR to a larger disk",
			      member->name, member->size);
	return 0;
}

static int copy_member(struct in *in, const struct tar_member *member, int fd, struct err *err)
{
	uint64_t left = member->size;

	while (left) {
		size_t have;
		const uint8_t *data = in_peek(in, 1, &have);
		int error;

		if (in->err.code) {
			*err = in->err;
			return -1;
		}
		if (!have)
			return err_at(err, ERR_INPUT, in->path, in_offset(in),
				      "the archive is cut short: '%s' lacks %" PRIu64 " bytes",
				      member->name, left);
		if (spool_is_bomb(in_given(in), in_offset(in)))
			return err_at(err, ERR_INPUT, in->path, in_offset(in),
				      "the archive is more than %d times as large as its file",
				      SPOOL_BOMB_RATIO);
		have = have < left ? have : (size_t)left;
		error = fd_write(fd, data, have);
		if (error)
			return no_room(in, error, err);
		in_skip(in, have);
		left -= have;
	}
	in_skip(in, tar_padding(member->size));
	return 0;
}

static struct store_file *expected(struct store *store, struct in *in,
				   const struct tar_member *member, struct err *err)
{
	uint32_t index = hash_get(&store->by_member, store_key_of(STORE_NAME, member->name));

	if (!index)
		err_at(err, ERR_INPUT, in->path, member->at, "'%s' is not in the manifest",
		       member->name);
	else if (store->files[index - 1].fd >= 0)
		err_at(err, ERR_INPUT, in->path, member->at, "'%s' is in the archive twice",
		       member->name);
	return err->code ? NULL : &store->files[index - 1];
}

static int take_member(struct store *store, struct in *in, const struct tar_member *member,
		       struct err *err)
{
	struct store_file *file = expected(store, in, member, err);
	bool large = member->size >= LARGE;

	if (!file)
		return -1;
	file->fd = large ? spool_file() : store->spool;
	if (file->fd < 0)
		return no_room(in, errno, err);
	file->size = member->size;
	file->offset = large ? 0 : store->spooled;
	store->spooled += large ? 0 : member->size;
	if (check_room(in, member, file->fd, err) < 0)
		return -1;
	return copy_member(in, member, file->fd, err);
}

static int read_members(struct store *store, struct in *in, struct err *err)
{
	struct tar_member member;
	int ret = tar_next(in, &member, err);

	if (ret == 0)
		err_at(err, ERR_INPUT, in->path, member.at, "the archive is empty");
	if (ret <= 0 || read_manifest(store, in, member.size, err) < 0)
		return -1;
	store->spool = spool_file();
	if (store->spool < 0)
		return no_room(in, errno, err);
	while ((ret = tar_next(in, &member, err)) > 0) {
		if (take_member(store, in, &member, err) < 0)
			return -1;
	}
	for (size_t i = 0; ret == 0 && i < store->nr; i++) {
		if (store->files[i].fd < 0)
			return err_at(err, ERR_INPUT, in->path, member.at,
				      "'%s' is in the manifest, but not in the archive",
				      store->files[i].member);
	}
	return ret;
}

bool store_probe(struct in *in)
{
	const uint8_t *head;
	size_t have;

	for (size_t want = 1; want <= strlen(STORE_MANIFEST); want++) {
		head = in_peek(in, want, &have);
		if (have < want || head[want - 1] != (uint8_t)STORE_MANIFEST[want - 1])
			return false;
	}
	head = in_peek(in, TAR_BLOCK, &have);
	return tar_probe(head, have, STORE_MANIFEST);
}

struct store *store_read_archive(struct in *in, struct err *err)
{
	struct store *store = store_new();

	store->archive = arena_strndup(&store->arena, in->path, strlen(in->path));
	if (read_members(store, in, err) == 0)
		return store;
	store_free(store);
	return NULL;
}
