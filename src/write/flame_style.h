/* SPDX-License-Identifier: GPL-2.0-or-later */
/* flame_style: the style of a flame graph from the command line's options. */
#ifndef KSCOPE_WRITE_FLAME_STYLE_H
#define KSCOPE_WRITE_FLAME_STYLE_H

#include "format.h"
#include "write/flame_svg.h"

int flame_style_from(struct flame_style *style, const struct options *options, struct err *err);

#endif
