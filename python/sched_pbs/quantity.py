# SPDX-License-Identifier: GPL-2.0
"""Quantities as files write them: ``20M`` instructions, ``4ms``, ``64MiB``, ``20%``.

A number without a unit has the unit that its key ends with (Documentation/plan-format.rst).
"""

import re
from decimal import Decimal

_INSNS = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_NS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
}
_BYTES = {
    "B": 1,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
_PERMILLE = {"%": 10, "‰": 1}

_ENDS = {
    "insns": _INSNS,
    "insns_per_ms": _INSNS,
    "insns_per_s": _INSNS,
    "ns": _NS,
    "bytes": _BYTES,
    "bytes_per_s": _BYTES,
    "permille": _PERMILLE,
}

_TEXT = re.compile(r"\s*(_*[0-9][0-9_]*(?:\._*[0-9][0-9_]*)?)\s*(\S*)\s*")


def units_of(name: str) -> dict[str, int] | None:
    """Units of the quantity that the end of a name declares; None: a count."""
    for end, units in _ENDS.items():
        if name == end or name.endswith("_" + end):
            return units
    return None


def number_of(name: str, text: str, needs_unit: bool = True) -> int:
    """Number that a text stands for, in the unit that ``name`` ends with.

    Keys need a unit in texts, and idle slots do not: ``"idle 5_000_000"``.

    >>> number_of("lease_ns", "2 s")
    2000000000
    >>> number_of("sigma_t1_permille", "105%")
    1050
    """
    units = units_of(name)
    found = _TEXT.fullmatch(text)
    if units is None or found is None:
        raise ValueError(f'{name} is "{text}"; write a whole number instead')
    unit = found[2]
    if needs_unit and not unit:
        raise ValueError(f'{name} is "{text}" without a unit; write a number without quotes')
    if unit and unit not in units:
        raise ValueError(f'{name} is "{text}"; write one of the units {", ".join(units)}')
    value = Decimal(found[1].replace("_", "")) * (units[unit] if unit else 1)
    if value != int(value):
        raise ValueError(f'{name} is "{text}", which is no whole number; round it')
    return int(value)
