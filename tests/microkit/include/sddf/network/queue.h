/* SPDX-License-Identifier: GPL-2.0-or-later */
/* queue.h: stands in for sDDF's header: what link_sddf_net uses of it. */
#ifndef STAND_IN_SDDF_NETWORK_QUEUE_H
#define STAND_IN_SDDF_NETWORK_QUEUE_H

#include <stdint.h>

typedef struct net_queue net_queue_t;
typedef struct net_queue_handle {
	net_queue_t *free, *active;
	uint32_t capacity;
} net_queue_handle_t;

void net_queue_init(net_queue_handle_t *handle, net_queue_t *free, net_queue_t *active,
		    uint32_t capacity);
void net_buffers_init(net_queue_handle_t *handle, uintptr_t base);

#endif
