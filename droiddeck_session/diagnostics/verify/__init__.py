# SPDX-License-Identifier: GPL-3.0-or-later
"""`verify`: the same awkward questions under the kernel and under each backend, and what they answered differently."""
