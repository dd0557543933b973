// SPDX-License-Identifier: GPL-2.0-or-later
	.cfi_sections .debug_frame
	.syntax unified
	.thumb
