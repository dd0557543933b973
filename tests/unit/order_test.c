// SPDX-License-Identifier: GPL-2.0-or-later
/* Order: what goes in nearly in order comes out in order, whatever its size. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "test.h"

/* Every byte of an item is that of its time, so that a torn one is seen. */
static void put(struct order *order, uint64_t time, size_t len)
{
	uint8_t *data = xmalloc(len + 1);

	memset(data, (int)(time & 0xff), len);
	order_put(order, time, 0, time, data, len);
	free(data);
}

static bool is_whole(const struct order_item *item)
{
	const uint8_t *data = (const uint8_t *)item->data;

	for (size_t i = 0; i < item->len; i++) {
		if (data[i] != (item->offset & 0xff))
			return false;
	}
	return true;
}

static size_t take(struct order *order, uint64_t *last, bool *good)
{
	const struct order_item *item;
	size_t nr = 0;

	while ((item = order_next(order))) {
		*good &= is_whole(item) && item->offset >= *last;
		*last = item->offset;
		nr++;
	}
	return nr;
}

static void test_sizes(void)
{
	static const size_t sizes[] = { 0, 1, 100, 524200, 524288, 3000000, 8, 700000 };
	struct order order = { 0 };
	uint64_t last = 0;
	bool good = true;
	size_t nr = 0;

	for (uint64_t round = 0; round < 20; round++) {
		for (uint64_t i = 0; i < 8; i++)
			put(&order, round * 100 + (i * 37) % 97, sizes[i]);
		order_until(&order, round * 100 + 50);
		nr += take(&order, &last, &good);
	}
	order_finish(&order);
	nr += take(&order, &last, &good);
	check("items of any size come whole and in order", good && nr == 160);
	order_release(&order);
}

static void test_until(void)
{
	struct order order = { 0 };
	uint64_t last = 0;
	bool good = true;

	put(&order, 30, 8);
	put(&order, 10, 8);
	put(&order, 20, 8);
	order_until(&order, 0);
	check("nothing is older than the beginning", take(&order, &last, &good) == 0);
	order_until(&order, 20);
	check("what is older may go, and no more", take(&order, &last, &good) == 1 && last == 10);
	order_until(&order, 31);
	check("the rest follows", take(&order, &last, &good) == 2 && good);
	order_release(&order);
}

/* Two cpus' records of the same times, in two orders that their buffers may be written in. */
static void test_same_time(void)
{
	static const uint32_t written[2][4] = { { 0, 1, 0, 1 }, { 1, 0, 1, 0 } };
	bool good = true;

	for (size_t way = 0; way < 2; way++) {
		struct order order = { 0 };
		const struct order_item *item;
		uint64_t nr = 0;

		for (size_t i = 0; i < 4; i++)
			order_put(&order, 10 + i / 2, written[way][i], written[way][i], "", 0);
		order_finish(&order);
		for (; (item = order_next(&order)); nr++)
			good &= item->offset == nr % 2;
		good &= nr == 4;
		order_release(&order);
	}
	check("of the same time the lower rank goes first", good);
}

/* Would take minutes if each of them looked at all that waits. */
static void test_rounds(void)
{
	enum { NR = 200000 };
	struct order order = { 0 };
	uint64_t last = 0;
	bool good = true;
	size_t nr = 0;

	for (uint64_t i = 0; i < NR; i++)
		put(&order, 2 * NR - i, 1);
	for (uint64_t i = 0; i < NR; i++) {
		order_until(&order, NR + i);
		nr += take(&order, &last, &good);
	}
	order_finish(&order);
	nr += take(&order, &last, &good);
	check("rounds without anything new do no harm", good && nr == NR);
	order_release(&order);
}

int main(void)
{
	test_sizes();
	test_until();
	test_same_time();
	test_rounds();
	return test_result();
}
