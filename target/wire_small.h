/* SPDX-License-Identifier: MIT */
/* wire_small: the encoder of wire.h, made for little code: a stream is slower than any encoder. */
#ifndef KSCOPE_WIRE_SMALL_H
#define KSCOPE_WIRE_SMALL_H

#define WIRE_PRIMITIVE static __attribute__((noinline, unused))
#include "wire/wire.h"

#endif
