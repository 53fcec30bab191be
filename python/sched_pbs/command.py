# SPDX-License-Identifier: GPL-2.0
"""The command ``pbsctl``: where it is, and what it says when it fails."""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any


# How another command is named, at the end of a remedy.
_NAME = "the argument pbsctl=, the variable PBSCTL, or PATH"

# Version of the answers that this package reads.
_VERSION = "1"

# Parts of messages about a command line that an older or a newer pbsctl does not know.
_UNKNOWN = ("unexpected argument", "unrecognized subcommand")

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
        if os.path.dirname(named) and os.path.isfile(named):
            raise PermissionError(
                f"{named} is no program that may be run; allow it with chmod +x {named}, or name "
                f"another one by {_NAME}"
            )
        raise FileNotFoundError(
            f'there is no command {named}; build it with "make pbsctl", and name it by {_NAME}'
        )
    return os.path.abspath(found)


def _of_another_version(command: Sequence[str]) -> str:
    return (
        f"{command[0]} may be of another version than this package; build it with "
        f'"make pbsctl" beside this package, or name another one by {_NAME}'
    )


def ended(command: Sequence[str], status: int, message: str = "") -> PbsctlError:
    """Error of a command that ended without an answer."""
    how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
    lines = [f"{shlex.join(command)} {how} and printed no JSON"]
    lines += [message] if message else ["its messages are on standard error"]
    if status == 2:
        lines.append(_of_another_version(command))
    return PbsctlError(status, "\n".join(lines), [])


def check_version(answer: dict[str, Any], command: Sequence[str]) -> None:
    """Refuse an answer of another version than this package reads."""
    name, _, version = str(answer.get("schema", "")).partition("/")
    if version not in ("", _VERSION):
        raise PbsctlError(
            1,
            f"{shlex.join(command)} printed {name}/{version}, and this package reads version "
            f"{_VERSION}; {_of_another_version(command)}",
            [],
        )


def failure_of(
    failure: dict[str, Any], status: int = 1, command: Sequence[str] = ("pbsctl",)
) -> PbsctlError:
    """Error of the object ``pbs.failure``, which a command printed."""
    problems = failure.get("problems") or []
    declined = failure.get("declined") or {}
    lines = [failure["error"]] if failure.get("error") else []
    lines += [declined["why"]] if declined.get("why") else []
    for problem in problems:
        place = [str(problem[key]) for key in ("file", "line") if problem.get(key) is not None]
        lines.append(
            ": ".join([":".join(place), problem["message"]] if place else [problem["message"]])
        )
    if any(words in line for line in lines for words in _UNKNOWN):
        lines.append(_of_another_version(command))
    lines = lines or [f"it ended with status {status}"]
    return PbsctlError(status, "\n".join([*lines, f"in: {shlex.join(command)}"]), problems)


def run_json(
    arguments: Sequence[str],
    text: str = "",
    pbsctl: str | pathlib.Path | None = None,
) -> dict[str, Any]:
    """Object that ``pbsctl --json ARGUMENTS`` prints; ``text`` is its standard input."""
    command = [find_pbsctl(pbsctl), "--json", *arguments]
    done = subprocess.run(command, input=text.encode(), capture_output=True)
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        message = done.stderr.decode("utf-8", "replace").strip()
        raise ended(command, done.returncode, message or "it printed no message") from None
    check_version(answer, command)
    if str(answer.get("schema", "")).startswith("pbs.failure/"):
        raise failure_of(answer, done.returncode, command)
    return answer
