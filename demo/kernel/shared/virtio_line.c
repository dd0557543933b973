// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The line, as a serial port of virtio on QEMU's virt machines:
 *
 *	-device virtio-serial-device -device virtserialport,chardev=ID
 *
 * It is not a console of virtio (virtconsole), because QEMU drops what is sent to that faster than
 * the host reads it. QEMU's default is virtio 0.9 ("legacy"), but both layouts work. Nothing here
 * uses interrupts.
 */
#include "kernel.h"

#define MAGIC 0x74726976
#define SERIAL_DEVICE 3
#define LEGACY 1

enum reg {
	REG_MAGIC = 0x00,
	REG_VERSION = 0x04,
	REG_DEVICE = 0x08,
	REG_FEATURES = 0x20,
	REG_FEATURES_WORD = 0x24,
	REG_PAGE_SIZE = 0x28, /* legacy */
	REG_QUEUE = 0x30,     /* the registers of queues are of this one */
	REG_QUEUE_SIZE = 0x38,
	REG_QUEUE_ALIGN = 0x3c, /* legacy */
	REG_QUEUE_PAGE = 0x40,	/* legacy */
	REG_QUEUE_READY = 0x44,
	REG_NOTIFY = 0x50,
	REG_STATUS = 0x70,
	REG_QUEUE_BUFFERS = 0x80,
	REG_QUEUE_GIVEN = 0x90,
	REG_QUEUE_TAKEN = 0xa0
};

/* Steps of the start, in REG_STATUS */
#define STATUS_FOUND 3
#define STATUS_FEATURES 8
#define STATUS_RUNS 4

#define FEATURE_PORTS (1u << 1)
#define FEATURE_NOT_LEGACY 1u /* in the second word */

/* Port 0 is for consoles. */
#define PORT 1
enum { CONTROL_IN = 2, CONTROL_OUT, LINE_IN, LINE_OUT, FIRST_QUEUE = CONTROL_IN, QUEUES = 4 };
enum { DEVICE_READY = 0, PORT_ADDED = 1, PORT_READY = 3, PORT_OPEN = 6 };

struct control {
	uint32_t port;
	uint16_t event, value;
};

#define BUFFERS 32
#define BUFFER_SIZE 512
#define PAGE_SIZE 4096
#define ALIGNMENT 64
#define WRITTEN_BY_DEVICE 2

/* The first three are shared with the device, in the legacy layout. */
static struct __attribute__((aligned(PAGE_SIZE))) queue {
	struct {
		uint64_t address;
		uint32_t size;
		uint16_t flags, next;
	} buffers[BUFFERS];
	struct {
		uint16_t flags, count, ring[BUFFERS];
	} given;
	struct {
		uint16_t flags, count;
		struct {
			uint32_t buffer, size;
		} ring[BUFFERS];
	} taken __attribute__((aligned(ALIGNMENT)));
	uint16_t seen; /* of taken.count */
	uint8_t memory[BUFFERS][BUFFER_SIZE];
} queues[QUEUES];

static volatile uint32_t *device;
static uint32_t free_buffers; /* of LINE_OUT, one bit each */

/* The buffer of LINE_IN that line_get() reads. */
static struct {
	unsigned buffer;
	uint32_t at, size;
} input;

static struct queue *queue(unsigned number)
{
	return &queues[number - FIRST_QUEUE];
}

static void set(enum reg reg, uint32_t value)
{
	device[reg / 4] = value;
}

static void set_address(enum reg reg, const void *pointer)
{
	uint64_t address = (uintptr_t)pointer - KERNEL_OFFSET;

	set(reg, (uint32_t)address);
	set(reg + 4, (uint32_t)(address >> 32));
}

static void give(struct queue *q, unsigned buffer, uint32_t size, bool by_device)
{
	uint16_t count = q->given.count;

	q->buffers[buffer].address = (uintptr_t)q->memory[buffer] - KERNEL_OFFSET;
	q->buffers[buffer].size = size;
	q->buffers[buffer].flags = by_device ? WRITTEN_BY_DEVICE : 0;
	q->given.ring[count % BUFFERS] = (uint16_t)buffer;
	__atomic_store_n(&q->given.count, (uint16_t)(count + 1), __ATOMIC_RELEASE);
}

/* Tells the device what was given. Registers are not ordered with memory. */
static void notify(unsigned number)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	set(REG_NOTIFY, number);
}

/* The next buffer that the device is done with, or -1. */
static int take(struct queue *q, uint32_t *size)
{
	unsigned at = q->seen % BUFFERS;

	if (__atomic_load_n(&q->taken.count, __ATOMIC_ACQUIRE) == q->seen)
		return -1;
	q->seen++;
	*size = q->taken.ring[at].size;
	return (int)q->taken.ring[at].buffer;
}

static void give_all(unsigned number)
{
	for (unsigned i = 0; i < BUFFERS; i++)
		give(queue(number), i, BUFFER_SIZE, true);
	notify(number);
}

static bool find_device(void)
{
	for (unsigned i = 0; i < VIRTIO_SLOTS; i++) {
		device = (volatile uint32_t *)(KERNEL_OFFSET + VIRTIO_FIRST + i * VIRTIO_STEP);
		if (device[REG_MAGIC / 4] == MAGIC && device[REG_DEVICE / 4] == SERIAL_DEVICE)
			return true;
	}
	return false;
}

static void start_queue(unsigned number, bool legacy)
{
	const struct queue *q = queue(number);

	set(REG_QUEUE, number);
	set(REG_QUEUE_SIZE, BUFFERS);
	if (legacy) {
		set(REG_QUEUE_ALIGN, ALIGNMENT);
		set(REG_QUEUE_PAGE, (uint32_t)(((uintptr_t)q - KERNEL_OFFSET) / PAGE_SIZE));
		return;
	}
	set_address(REG_QUEUE_BUFFERS, q->buffers);
	set_address(REG_QUEUE_GIVEN, &q->given);
	set_address(REG_QUEUE_TAKEN, &q->taken);
	set(REG_QUEUE_READY, 1);
}

static void start_device(void)
{
	bool legacy = device[REG_VERSION / 4] == LEGACY;
	uint32_t status = STATUS_FOUND;

	set(REG_STATUS, 0);
	set(REG_STATUS, status);
	set(REG_FEATURES_WORD, 0);
	set(REG_FEATURES, FEATURE_PORTS);
	if (legacy) {
		set(REG_PAGE_SIZE, PAGE_SIZE);
	} else {
		set(REG_FEATURES_WORD, 1);
		set(REG_FEATURES, FEATURE_NOT_LEGACY);
		set(REG_STATUS, status |= STATUS_FEATURES);
	}
	for (unsigned i = 0; i < QUEUES; i++)
		start_queue(FIRST_QUEUE + i, legacy);
	set(REG_STATUS, status | STATUS_RUNS);
}

static void control(unsigned buffer, uint32_t port, uint16_t event)
{
	struct queue *q = queue(CONTROL_OUT);

	*(struct control *)q->memory[buffer] = (struct control){ port, event, 1 };
	give(q, buffer, sizeof(struct control), false);
	notify(CONTROL_OUT);
}

/* QEMU answers at once. Its later messages do not matter, so their buffers are not given back. */
static bool port_is_there(void)
{
	struct queue *q = queue(CONTROL_IN);
	uint64_t until = time_ns() + 100 * 1000000;
	uint32_t size;

	do {
		int buffer = take(q, &size);
		const struct control *c = buffer < 0 ? NULL : (struct control *)q->memory[buffer];

		if (c && c->event == PORT_ADDED && c->port == PORT)
			return true;
	} while (time_ns() < until);
	return false;
}

bool line_init(void)
{
	if (!find_device())
		return false;
	start_device();
	give_all(CONTROL_IN);
	control(0, PORT, DEVICE_READY);
	if (!port_is_there())
		return false;
	give_all(LINE_IN);
	control(1, PORT, PORT_READY);
	control(2, PORT, PORT_OPEN);
	free_buffers = (uint32_t)-1;
	return true;
}

size_t line_put(const void *bytes, size_t size)
{
	struct queue *q = queue(LINE_OUT);
	const uint8_t *from = bytes;
	uint32_t unused;
	size_t done = 0;

	for (int buffer; (buffer = take(q, &unused)) >= 0;)
		free_buffers |= 1u << buffer;
	while (done < size && free_buffers) {
		unsigned buffer = (unsigned)__builtin_ctz(free_buffers);
		size_t part = size - done < BUFFER_SIZE ? size - done : BUFFER_SIZE;

		for (size_t i = 0; i < part; i++)
			q->memory[buffer][i] = from[done + i];
		free_buffers &= ~(1u << buffer);
		give(q, buffer, (uint32_t)part, false);
		done += part;
	}
	if (done)
		notify(LINE_OUT);
	return done;
}

int line_get(void)
{
	struct queue *q = queue(LINE_IN);
	int buffer, byte;

	if (input.at == input.size) {
		input.at = input.size = 0;
		buffer = take(q, &input.size);
		if (buffer < 0)
			return -1;
		input.buffer = (unsigned)buffer;
		if (!input.size) {
			give(q, input.buffer, BUFFER_SIZE, true);
			return -1;
		}
	}
	byte = q->memory[input.buffer][input.at++];
	if (input.at == input.size) {
		give(q, input.buffer, BUFFER_SIZE, true);
		notify(LINE_IN);
	}
	return byte;
}
