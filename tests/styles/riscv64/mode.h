/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of what differs between machine mode and supervisor mode. */
#pragma once

#ifdef MACHINE_MODE
#define CSR(name) m##name
#define TRAP_RETURN mret
#define STATUS_KEPT 0x1880 /* MPP and MPIE: first state of a thread */
#define STATUS_ON 8
#else
#define CSR(name) s##name
#define TRAP_RETURN sret
#define STATUS_KEPT 0x120 /* SPP and SPIE */
#define STATUS_ON 2
#endif

#define FRAME_SIZE 272
#define FRAME_PC 0 /* in place of x0 */
#define FRAME_STATUS 256
#define PC_COLUMN 32 /* f0, which the guests do not use, stands for the interrupted pc */
