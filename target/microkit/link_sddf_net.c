// SPDX-License-Identifier: MIT
/*
 * link_sddf_net: the line to the host is TCP, by lwIP on the network subsystem of sDDF. It listens on port 1236; a new
 * connection takes the place of the one before. The client also needs sDDF's timer, for lwIP.
 */
#include <microkit.h>
#include <sddf/network/config.h>
#include <sddf/network/lib_sddf_lwip.h>
#include <sddf/network/queue.h>
#include <sddf/timer/client.h>
#include <sddf/timer/config.h>

#include "lwip/tcp.h"

#include "domain.h"

#define PORT 1236
#define LWIP_TICK 100000000ull /* ns */
#define COMMANDS 4096	       /* bytes that were received, but not read; a power of two */

/* sDDF's tools write these into the ELF file of the client. */
#define CONFIG(section_name) __attribute__((section(section_name), used))
CONFIG(".timer_client_config") timer_client_config_t kscope_timer_config;
CONFIG(".net_client_config") net_client_config_t kscope_net_config;
CONFIG(".lib_sddf_lwip_config") lib_sddf_lwip_config_t kscope_lwip_config;

static net_queue_handle_t receives, sends;
static struct tcp_pcb *host;
static uint8_t commands[COMMANDS];
static unsigned read_at, write_at;

/* ---- the connection ---- */

static void forget(struct tcp_pcb *connection)
{
	tcp_arg(connection, NULL);
	tcp_recv(connection, NULL);
	tcp_err(connection, NULL);
}

static void be_lost(void *data, err_t error)
{
	(void)data;
	(void)error;
	host = NULL;
}

/* What does not fit at the moment comes again. What never fits is no command. */
static err_t receive(void *data, struct tcp_pcb *connection, struct pbuf *bytes, err_t error)
{
	(void)data;
	(void)error;
	if (!bytes) {
		forget(connection);
		host = NULL;
		return tcp_close(connection);
	}
	if (bytes->tot_len <= COMMANDS && bytes->tot_len > COMMANDS - (write_at - read_at))
		return ERR_MEM;
	for (u16_t i = 0; bytes->tot_len <= COMMANDS && i < bytes->tot_len; i++)
		commands[write_at++ % COMMANDS] = pbuf_get_at(bytes, i);
	tcp_recved(connection, bytes->tot_len);
	pbuf_free(bytes);
	return ERR_OK;
}

static err_t accept(void *data, struct tcp_pcb *connection, err_t error)
{
	(void)data;
	if (error != ERR_OK || !connection)
		return ERR_VAL;
	if (host) {
		forget(host);
		tcp_abort(host);
	}
	host = connection;
	tcp_recv(host, receive);
	tcp_err(host, be_lost);
	read_at = write_at; /* the last host has no more to say */
	if (shared_is_ready())
		kscope_connected(&shared_region()->k);
	return ERR_OK;
}

static void listen(void)
{
	struct tcp_pcb *door = tcp_new_ip_type(IPADDR_TYPE_V4);

	if (!door || tcp_bind(door, IP_ANY_TYPE, PORT) != ERR_OK) {
		microkit_dbg_puts("kscope: cannot listen\n");
		return;
	}
	door = tcp_listen_with_backlog(door, 1);
	if (door)
		tcp_accept(door, accept);
}

/* ---- the interface ---- */

void link_init(void)
{
	const net_client_config_t *config = &kscope_net_config;

	net_queue_init(&receives, config->rx.free_queue.vaddr, config->rx.active_queue.vaddr,
		       config->rx.num_buffers);
	net_queue_init(&sends, config->tx.free_queue.vaddr, config->tx.active_queue.vaddr,
		       config->tx.num_buffers);
	net_buffers_init(&sends, 0);
	sddf_lwip_init(&kscope_lwip_config, &kscope_net_config, &kscope_timer_config, receives,
		       sends, NULL, NULL, NULL, NULL, NULL, NULL);
	sddf_timer_set_timeout(kscope_timer_config.driver_id, LWIP_TICK);
	listen();
	sddf_lwip_maybe_notify();
}

void link_notified(unsigned channel)
{
	if (channel == kscope_net_config.rx.id) {
		sddf_lwip_process_rx();
	} else if (channel == kscope_timer_config.driver_id) {
		sddf_lwip_process_timeout();
		sddf_timer_set_timeout(kscope_timer_config.driver_id, LWIP_TICK);
	}
	sddf_lwip_maybe_notify();
}

size_t link_send(const void *bytes, size_t size)
{
	size_t room = host ? tcp_sndbuf(host) : 0;

	if (room > size)
		room = size;
	if (!room || tcp_write(host, bytes, (u16_t)room, TCP_WRITE_FLAG_COPY) != ERR_OK)
		return 0;
	tcp_output(host);
	sddf_lwip_maybe_notify();
	return room;
}

int link_receive(void)
{
	return read_at == write_at ? -1 : commands[read_at++ % COMMANDS];
}
