/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib_sddf_lwip.h: stands in for sDDF's header: what link_sddf_net uses of it. */
#ifndef STAND_IN_LIB_SDDF_LWIP_H
#define STAND_IN_LIB_SDDF_LWIP_H

#include "sddf/network/config.h"
#include "sddf/network/queue.h"
#include "sddf/timer/config.h"

typedef struct lib_sddf_lwip_config {
	char magic[5];
	region_resource_t pbuf_pool;
	uint64_t num_pbufs;
} lib_sddf_lwip_config_t;

typedef void (*sddf_lwip_callback)(void);

/* The callbacks have types of their own; all are optional. */
void sddf_lwip_init(lib_sddf_lwip_config_t *config, net_client_config_t *net,
		    timer_client_config_t *timer, net_queue_handle_t rx, net_queue_handle_t tx,
		    char *address, sddf_lwip_callback error, sddf_lwip_callback status,
		    sddf_lwip_callback no_buffers, sddf_lwip_callback condition,
		    sddf_lwip_callback intercept);
void sddf_lwip_process_rx(void);
void sddf_lwip_process_timeout(void);
void sddf_lwip_maybe_notify(void);

#endif
