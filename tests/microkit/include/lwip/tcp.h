/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tcp.h: stands in for the header of lwIP: what link_sddf_net uses of it. */
#ifndef STAND_IN_LWIP_TCP_H
#define STAND_IN_LWIP_TCP_H

#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8_t;
typedef uint16_t u16_t;
typedef int8_t err_t;
enum { ERR_OK = 0, ERR_MEM = -1, ERR_VAL = -6 };

struct pbuf {
	u16_t tot_len;
};
u8_t pbuf_get_at(const struct pbuf *bytes, u16_t offset);
u8_t pbuf_free(struct pbuf *bytes);

typedef struct ip_addr ip_addr_t;
extern const ip_addr_t ip_addr_any_type;
#define IP_ANY_TYPE (&ip_addr_any_type)
#define IPADDR_TYPE_V4 0
#define TCP_WRITE_FLAG_COPY 1

struct tcp_pcb {
	u16_t snd_buf;
};
#define tcp_sndbuf(connection) ((connection)->snd_buf)
typedef err_t (*tcp_accept_fn)(void *data, struct tcp_pcb *connection, err_t error);
typedef err_t (*tcp_recv_fn)(void *data, struct tcp_pcb *connection, struct pbuf *bytes,
			     err_t error);
typedef void (*tcp_err_fn)(void *data, err_t error);

struct tcp_pcb *tcp_new_ip_type(u8_t type);
err_t tcp_bind(struct tcp_pcb *connection, const ip_addr_t *address, u16_t port);
struct tcp_pcb *tcp_listen_with_backlog(struct tcp_pcb *connection, u8_t backlog);
void tcp_accept(struct tcp_pcb *connection, tcp_accept_fn accept);
void tcp_arg(struct tcp_pcb *connection, void *data);
void tcp_recv(struct tcp_pcb *connection, tcp_recv_fn receive);
void tcp_err(struct tcp_pcb *connection, tcp_err_fn error);
void tcp_recved(struct tcp_pcb *connection, u16_t size);
err_t tcp_close(struct tcp_pcb *connection);
void tcp_abort(struct tcp_pcb *connection);
err_t tcp_write(struct tcp_pcb *connection, const void *bytes, u16_t size, u8_t flags);
err_t tcp_output(struct tcp_pcb *connection);

#endif
