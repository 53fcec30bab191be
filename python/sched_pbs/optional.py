# SPDX-License-Identifier: GPL-2.0
"""Packages that are used where they are installed."""

import importlib
import importlib.util
from collections.abc import Iterable
from typing import Any


def has(name: str) -> bool:
    """Whether a package is installed."""
    return importlib.util.find_spec(name) is not None


def need(name: str, instead: str) -> Any:
    """Module of a package; ``instead`` is what works without it."""
    if not has(name.split(".", 1)[0]):
        package = name.split(".", 1)[0]
        raise ImportError(
            f"the Python package {package} is missing; install it (Debian: python3-{package}, "
            f"pip: {package}), or {instead}"
        )
    return importlib.import_module(name)


def frame(records: Iterable[dict[str, Any]]) -> Any:
    """``pandas.DataFrame`` of records, such as the events of a simulation."""
    pandas = need("pandas", "use the records, which are dictionaries")
    return pandas.DataFrame(list(records))
