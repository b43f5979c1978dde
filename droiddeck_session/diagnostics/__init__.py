# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions about the machine and the project: doctor, benchmarks."""
