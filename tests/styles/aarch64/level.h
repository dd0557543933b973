/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of what differs between EL1 and EL2, and the frame of a trap. */
#pragma once

#define EL__(name, level) name##_el##level
#define EL_(name, level) EL__(name, level)
#define EL(name) EL_(name, LEVEL)

#define FRAME_SIZE 272
#define FRAME_PC 248
#define PC_COLUMN 32 /* the interrupted pc is in ELR, not in x30 */
#define TRAP_KIND_SYNC 0
#define TRAP_KIND_INTERRUPT 1
#define TRAP_KIND_OTHER 2
