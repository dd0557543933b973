/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sel4_pb: counts samples of the seL4 profiler's TCP stream while they arrive. */
#ifndef KSCOPE_READ_SEL4_PB_H
#define KSCOPE_READ_SEL4_PB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Adds the number of samples to *samples. Returns how many bytes it has dealt with: the rest may be part of a sample,
 * and belongs in front of the next bytes. all: no more bytes will come, so none are left.
 */
size_t sel4_pb_count(const uint8_t *data, size_t len, bool all, uint64_t *samples);

#endif
