// SPDX-License-Identifier: MIT
/*
 * link_sddf_serial: the line to the host is a client of sDDF's serial subsystem. The virtualisers have to pass all
 * bytes on as they are: without colours, and without another client that prints.
 */
#include <microkit.h>
#include <sddf/serial/config.h>
#include <sddf/serial/queue.h>

#include "domain.h"

/* sDDF's tools write it into the ELF file of the client. */
__attribute__((section(".serial_client_config"), used)) serial_client_config_t kscope_serial_config;

static serial_queue_handle_t receives, sends;

void link_init(void)
{
	const serial_connection_resource_t *rx = &kscope_serial_config.rx;
	const serial_connection_resource_t *tx = &kscope_serial_config.tx;

	if (!serial_config_check_magic(&kscope_serial_config)) {
		microkit_dbg_puts("kscope: the client's ELF file has no configuration of sDDF\n");
		return;
	}
	serial_queue_init(&receives, rx->queue.vaddr, (uint32_t)rx->data.size, rx->data.vaddr);
	serial_queue_init(&sends, tx->queue.vaddr, (uint32_t)tx->data.size, tx->data.vaddr);
}

void link_notified(unsigned channel)
{
	/* What is in the queues is for link_receive() and link_send(). */
	(void)channel;
}

size_t link_send(const void *bytes, size_t size)
{
	uint32_t sent;

	if (!sends.queue)
		return size;
	sent = serial_enqueue_batch(&sends, (uint32_t)size, bytes);
	if (sent < size) {
		/* Somebody may have made room before the request could be seen: then nobody tells us. */
		serial_request_consumer_signal(&sends);
		sent += serial_enqueue_batch(&sends, (uint32_t)size - sent,
					     (const char *)bytes + sent);
	} else {
		serial_cancel_consumer_signal(&sends);
	}
	if (sent)
		microkit_notify(kscope_serial_config.tx.id);
	return sent;
}

int link_receive(void)
{
	char c;

	return receives.queue && serial_dequeue(&receives, &c) == 0 ? (int)(uint8_t)c : -1;
}
