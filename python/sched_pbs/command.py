# SPDX-License-Identifier: GPL-2.0
"""The command ``pbsctl``: where it is, and what it says when it fails."""

import json
import os
import pathlib
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any


# Programs may change to another directory later, and PBSCTL is meant in this one.
_FIRST_DIRECTORY = os.getcwd()


class PbsctlError(RuntimeError):
    """Failure of ``pbsctl``, with its messages."""

    def __init__(self, status: int, message: str, problems: list[dict[str, Any]]) -> None:
        super().__init__(message)
        self.status = status
        """Exit status (Documentation/pbsctl.rst)."""
        self.problems = problems
        """Problems of a file, each with ``file``, ``line`` and ``message``."""


def find_pbsctl(pbsctl: str | pathlib.Path | None = None) -> str:
    """Absolute path of the command: the argument, the variable PBSCTL, or the first one in PATH.

    A relative path in the variable starts in the directory in which the package was imported.
    """
    variable = os.environ.get("PBSCTL", "")
    if os.sep in variable:
        variable = os.path.join(_FIRST_DIRECTORY, variable)
    named = pbsctl or variable or "pbsctl"
    found = shutil.which(named)
    if found is None:
        raise FileNotFoundError(
            f'there is no command {named}; build it with "make pbsctl", and name it by the '
            "argument pbsctl=, the variable PBSCTL, or PATH"
        )
    return os.path.abspath(found)


def failure_of(failure: dict[str, Any], status: int = 1) -> PbsctlError:
    """Error of the object ``pbs.failure``."""
    problems = failure.get("problems") or []
    declined = failure.get("declined") or {}
    lines = [failure["error"]] if failure.get("error") else []
    lines += [declined["why"]] if declined.get("why") else []
    for problem in problems:
        place = [str(problem[key]) for key in ("file", "line") if problem.get(key) is not None]
        lines.append(
            ": ".join([":".join(place), problem["message"]] if place else [problem["message"]])
        )
    return PbsctlError(status, "\n".join(lines) or f"pbsctl ended with status {status}", problems)


def run_json(
    arguments: Sequence[str],
    text: str = "",
    pbsctl: str | pathlib.Path | None = None,
) -> dict[str, Any]:
    """Object that ``pbsctl --json ARGUMENTS`` prints; ``text`` is its standard input."""
    done = subprocess.run(
        [find_pbsctl(pbsctl), "--json", *arguments], input=text.encode(), capture_output=True
    )
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        message = done.stderr.decode("utf-8", "replace").strip()
        message = message or f"pbsctl ended with status {done.returncode} and printed no JSON"
        raise PbsctlError(done.returncode, message, []) from None
    if str(answer.get("schema", "")).startswith("pbs.failure/"):
        raise failure_of(answer, done.returncode)
    return answer
