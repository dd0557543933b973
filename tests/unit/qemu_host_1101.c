// SPDX-License-Identifier: GPL-2.0-or-later
/* The plugin in a host with the interface of QEMU 11.1. */
#define HOST_VERSION 1101
#include "../tools/qemu_host.h"
