/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config.h: stands in for sDDF's header: what link_sddf_serial uses of it. */
#ifndef STAND_IN_SDDF_SERIAL_CONFIG_H
#define STAND_IN_SDDF_SERIAL_CONFIG_H

#include "sddf/region.h"

typedef struct serial_connection_resource {
	region_resource_t queue, data;
	uint8_t id;
} serial_connection_resource_t;

typedef struct serial_client_config {
	char magic[5];
	serial_connection_resource_t rx, tx;
} serial_client_config_t;

bool serial_config_check_magic(void *config);

#endif
