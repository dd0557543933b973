/* SPDX-License-Identifier: GPL-2.0-or-later */
/* client.h: stands in for sDDF's header: what link_sddf_net uses of it. */
#ifndef STAND_IN_SDDF_TIMER_CLIENT_H
#define STAND_IN_SDDF_TIMER_CLIENT_H

#include <stdint.h>

void sddf_timer_set_timeout(unsigned int channel, uint64_t ns);

#endif
