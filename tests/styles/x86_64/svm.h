/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The registers of a guest that enter_guest() loads and saves; the cpu does so for rax and rsp. */
#pragma once

#define GUEST_RCX 1
#define GUEST_RDI 5
#define GUEST_REGISTERS 14
