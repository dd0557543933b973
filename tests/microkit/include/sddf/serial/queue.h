/* SPDX-License-Identifier: GPL-2.0-or-later */
/* queue.h: stands in for sDDF's header: what link_sddf_serial uses of it. */
#ifndef STAND_IN_SDDF_SERIAL_QUEUE_H
#define STAND_IN_SDDF_SERIAL_QUEUE_H

#include <stdint.h>

typedef struct serial_queue serial_queue_t;
typedef struct serial_queue_handle {
	serial_queue_t *queue;
	uint32_t capacity;
	char *data_region;
} serial_queue_handle_t;

void serial_queue_init(serial_queue_handle_t *handle, serial_queue_t *queue, uint32_t capacity,
		       char *data_region);
uint32_t serial_enqueue_batch(serial_queue_handle_t *handle, uint32_t count, const char *bytes);
int serial_dequeue(serial_queue_handle_t *handle, char *byte);
void serial_request_consumer_signal(serial_queue_handle_t *handle);
void serial_cancel_consumer_signal(serial_queue_handle_t *handle);

#endif
