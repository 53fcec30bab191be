# SPDX-License-Identifier: GPL-2.0
"""Tests of the package, run by ``python3 -m unittest`` in the folder ``python``."""
