/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config.h: stands in for sDDF's header: what link_sddf_net uses of it. */
#ifndef STAND_IN_SDDF_TIMER_CONFIG_H
#define STAND_IN_SDDF_TIMER_CONFIG_H

#include <stdint.h>

typedef struct timer_client_config {
	char magic[5];
	uint8_t driver_id;
} timer_client_config_t;

#endif
