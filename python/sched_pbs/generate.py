# SPDX-License-Identifier: GPL-2.0
"""Random plans by ``pbsctl plan generate``."""

import pathlib

from .command import run_json
from .plan import Plan


def generate(
    scenario: str = "normal",
    seed: int = 1,
    pbsctl: str | pathlib.Path | None = None,
    **options: int | str,
) -> Plan:
    """Random plan; ``pbsctl plan generate --list`` explains the scenarios.

    ``options`` are those of the command: ``processes=3``, ``tasks="20..20"``,
    ``task_sigma_permille=100``.  The same seed makes the same plan.
    """
    arguments = ["plan", "generate", scenario, "--seed", str(seed)]
    for name, value in options.items():
        arguments += ["--" + name.replace("_", "-"), str(value)]
    return Plan.loads(run_json(arguments, pbsctl=pbsctl)["toml"])
