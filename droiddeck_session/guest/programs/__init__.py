# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that run inside the guest: staged one by one, standard library only, never imported by the host.

See docs/guest-programs.md for what each is and where it stands in the guest.
"""
