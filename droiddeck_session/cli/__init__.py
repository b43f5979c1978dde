# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person types: one module per verb; parses, calls, prints; nothing else."""
