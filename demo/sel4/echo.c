// SPDX-License-Identifier: GPL-2.0-or-later
/* echo: a small TCP echo server, from the receive ring of the driver to the transmit ring. */
#include <stdint.h>

#define RING 64
#define MTU 1500

struct packet {
	uint16_t len;
	uint8_t data[MTU];
};

static struct packet rx[RING], tx[RING];
volatile unsigned sent;

__attribute__((noinline)) void copy_bytes(uint8_t *to, const uint8_t *from, unsigned len)
{
	while (len--)
		*to++ = *from++;
}

static inline uint32_t fold_carry(uint32_t sum)
{
	return (sum & 0xffff) + (sum >> 16);
}

__attribute__((noinline)) uint16_t checksum(const uint8_t *data, unsigned len)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i + 1 < len; i += 2)
		sum = fold_carry(sum + (uint32_t)(data[i] << 8 | data[i + 1]));
	return (uint16_t)~sum;
}

__attribute__((noinline)) int ethernet_output(struct packet *p)
{
	p->data[0] ^= 1;
	sent++;
	return p->len;
}

__attribute__((noinline)) int tcp_output(struct packet *p, const uint8_t *data, unsigned len)
{
	copy_bytes(p->data + 54, data, len);
	p->len = (uint16_t)(len + 54);
	p->data[50] = (uint8_t)checksum(p->data, p->len);
	return ethernet_output(p) + 1;
}

__attribute__((noinline)) int tcp_input(struct packet *p, unsigned slot)
{
	if (checksum(p->data, p->len) == 0)
		return 0;
	return tcp_output(&tx[slot % RING], p->data + 54, p->len) + 1;
}

__attribute__((noinline)) int ip_input(struct packet *p, unsigned slot)
{
	if (checksum(p->data + 14, 20) == 1)
		return 0;
	return tcp_input(p, slot) + 1;
}

__attribute__((noinline)) int process_rx_queue(unsigned slot)
{
	int handled = 0;

	for (unsigned i = 0; i < RING; i++)
		handled += ip_input(&rx[i], slot + i);
	return handled;
}

__attribute__((noinline)) int notified(unsigned channel)
{
	return process_rx_queue(channel) + 1;
}

void _start(void)
{
	for (unsigned channel = 0;; channel++)
		sent += (unsigned)notified(channel);
}
