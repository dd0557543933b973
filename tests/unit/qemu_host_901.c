// SPDX-License-Identifier: GPL-2.0-or-later
/* The plugin in a host with the interface of QEMU 9.1. */
#define HOST_VERSION 901
#include "../tools/qemu_host.h"
