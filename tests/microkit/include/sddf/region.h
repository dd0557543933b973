/* SPDX-License-Identifier: GPL-2.0-or-later */
/* region.h: memory that sDDF's tools give to a protection domain, for the headers that stand in for sDDF's. */
#ifndef STAND_IN_SDDF_REGION_H
#define STAND_IN_SDDF_REGION_H

#include <stdbool.h>
#include <stdint.h>

typedef struct region_resource {
	void *vaddr;
	uint64_t size;
} region_resource_t;

#endif
