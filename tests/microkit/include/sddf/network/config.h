/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config.h: stands in for sDDF's header: what link_sddf_net uses of it. */
#ifndef STAND_IN_SDDF_NETWORK_CONFIG_H
#define STAND_IN_SDDF_NETWORK_CONFIG_H

#include "sddf/region.h"

typedef struct net_connection_resource {
	region_resource_t free_queue, active_queue;
	uint16_t num_buffers;
	uint8_t id;
} net_connection_resource_t;

typedef struct net_client_config {
	char magic[5];
	net_connection_resource_t rx, tx;
} net_client_config_t;

#endif
