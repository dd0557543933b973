/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config.h: a kernel that lets user code use the timer. */
#ifndef STAND_IN_SEL4_CONFIG_H
#define STAND_IN_SEL4_CONFIG_H

#define CONFIG_EXPORT_PCNT_USER 1
#define CONFIG_EXPORT_PTMR_USER 1

#endif
