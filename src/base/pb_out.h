/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pb_out: writes protobuf into a buffer. */
#ifndef KSCOPE_BASE_PB_OUT_H
#define KSCOPE_BASE_PB_OUT_H

#include "base/buf.h"

void pb_put_uint(struct buf *buf, uint32_t field, uint64_t value);
void pb_put_bytes(struct buf *buf, uint32_t field, const void *data, size_t len);
/* A repeated field of numbers. */
void pb_put_packed(struct buf *buf, uint32_t field, const uint64_t *values, size_t nr);
void pb_put_text(struct buf *buf, uint32_t field, const char *text);
/* A message: pass what pb_open() returned to pb_close(), in the reverse order. */
size_t pb_open(struct buf *buf, uint32_t field);
void pb_close(struct buf *buf, size_t start);

#endif
