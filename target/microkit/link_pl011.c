// SPDX-License-Identifier: MIT
/* link_pl011: the line to the host is a PL011, which no other protection domain uses. */
#include <microkit.h>

#include "domain.h"

uintptr_t kscope_uart; /* the system description sets it */

enum { DR = 0x00, FR = 0x18, LCR_H = 0x2c, CR = 0x30, IMSC = 0x38, ICR = 0x44 };
#define FR_RXFE (1u << 4) /* nothing was received */
#define FR_TXFF (1u << 5) /* no room */
#define FR_TXFE (1u << 7) /* all was sent */
#define FIFO 16		  /* bytes, at least */
#define LCR_H_8_BITS (3u << 5)
#define LCR_H_FIFOS (1u << 4)
#define CR_ENABLE (1u << 0 | 1u << 8 | 1u << 9)
#define INT_RX (1u << 4)
#define INT_TX (1u << 5)
#define INT_TIMEOUT (1u << 6) /* less was received than the FIFO's level */

static volatile uint32_t *reg(unsigned offset)
{
	return (volatile uint32_t *)(kscope_uart + offset);
}

void link_init(void)
{
	/* The speed stays as it is: the boot loader knows the clock. */
	*reg(LCR_H) = LCR_H_8_BITS | LCR_H_FIFOS;
	*reg(CR) = CR_ENABLE;
	*reg(ICR) = 0x7ff;
	*reg(IMSC) = INT_RX | INT_TIMEOUT;
}

void link_notified(unsigned channel)
{
	/* What is in the FIFOs is for link_receive() and link_send(). */
	*reg(ICR) = INT_RX | INT_TX | INT_TIMEOUT;
	microkit_irq_ack(channel);
}

size_t link_send(const void *bytes, size_t size)
{
	const uint8_t *byte = bytes;
	size_t sent = 0;

	while (sent < size) {
		/* To read a register of a device takes long, so this is not done for each byte. */
		uint32_t flags = *reg(FR);
		size_t room = flags & FR_TXFE ? FIFO : flags & FR_TXFF ? 0 : 1;

		if (!room)
			break;
		while (room-- && sent < size)
			*reg(DR) = byte[sent++];
	}
	/* It interrupts when there is room again. */
	*reg(IMSC) = INT_RX | INT_TIMEOUT | (sent < size ? INT_TX : 0);
	return sent;
}

int link_receive(void)
{
	return *reg(FR) & FR_RXFE ? -1 : (int)(*reg(DR) & 0xff);
}
