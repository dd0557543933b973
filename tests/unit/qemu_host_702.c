// SPDX-License-Identifier: GPL-2.0-or-later
/* The plugin in a host with the interface of QEMU 7.2. */
#define HOST_VERSION 702
#include "../tools/qemu_host.h"
