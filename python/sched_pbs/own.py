# SPDX-License-Identifier: GPL-2.0
"""A program that is a process of a plan: its place there, and the ends of its tasks.

The job has ``attaches = "itself"``.  Without a plan, also after the plan was dropped, the calls
do nothing: the program simply does its work.
"""

import errno
import fcntl
import os
import struct
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

_MAGIC = 0xBC
_NO_TASK = 0xFFFF_FFFF
_ATTACH = struct.Struct("=iII5I")
_TASK_END = struct.Struct("=II6I")
_DETACH = struct.Struct("=i")
_ERROR = struct.Struct("=iIQ240s")
# As struct pbs_process.
_PROCESS = struct.Struct("=IIQIIIIQQqQIIIIQQQQQQQ4Q")


def _request(number: int, layout: struct.Struct, reads: bool, writes: bool) -> int:
    """Number of an ioctl, as ``_IOC`` makes it."""
    machine = os.uname().machine
    # These machines have 13 bits for the size, and another order of directions.
    if machine.startswith(("ppc", "mips", "sparc", "alpha", "parisc")):
        direction = (2 if reads else 0) | (4 if writes else 0)
        return direction << 29 | layout.size << 16 | _MAGIC << 8 | number
    direction = (2 if reads else 0) | (1 if writes else 0)
    return direction << 30 | layout.size << 16 | _MAGIC << 8 | number


ATTACH = _request(1, _ATTACH, reads=False, writes=True)
TASK_END = _request(2, _TASK_END, reads=True, writes=True)
DETACH = _request(3, _DETACH, reads=False, writes=True)
ERROR = _request(6, _ERROR, reads=True, writes=False)
GET_PROCESS = _request(9, _PROCESS, reads=True, writes=True)


@dataclass(frozen=True)
class Place:
    """Place of this program in its plan, from the environment; ``None`` is unknown."""

    job: int | None = None
    job_name: str | None = None
    array_index: int | None = None
    deadline_unix_ns: int | None = None
    planned_end_unix_ns: int | None = None
    memory_bytes: int | None = None
    process: int | None = None
    cpu: int | None = None
    task: int | None = None
    task_name: str | None = None
    task_insns: int | None = None

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] = os.environ) -> "Place":
        """Place that the variables ``SCHED_PBS_*`` describe (service.rst)."""

        def number(name: str) -> int | None:
            text = environment.get(f"SCHED_PBS_{name}", "")
            return int(text) if text.isascii() and text.isdigit() else None

        return cls(
            job=number("JOB_ID"),
            job_name=environment.get("SCHED_PBS_JOB_NAME"),
            array_index=number("ARRAY_INDEX"),
            deadline_unix_ns=number("DEADLINE_UNIX_NS"),
            planned_end_unix_ns=number("PLANNED_END_UNIX_NS"),
            memory_bytes=number("MEMORY_BYTES"),
            process=number("PROCESS"),
            cpu=number("CPU"),
            task=number("TASK"),
            task_name=environment.get("SCHED_PBS_TASK_NAME"),
            task_insns=number("TASK_INSNS"),
        )


class OwnProcess:
    """The process of a plan that this program is.

    ``PBS_PROCESS`` names the process and ``PBS_DEVICE`` the device; ``pbsctl run`` and ``pbsd``
    set both.  Without ``PBS_PROCESS``, ``is_planned`` is false.  A refusal of the kernel is an
    ``OSError`` with the kernel's reason.  The thread that makes the object is in the plan, and
    only that thread may use it.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._device: int | None = None
        self.process: int | None = None
        text = environment.get("PBS_PROCESS")
        if text is None:
            return
        if not (text.isascii() and text.isdigit()):
            raise ValueError(f"PBS_PROCESS is {text!r}; write the number of a process of the plan")
        self.process = int(text)
        if self.process > _NO_TASK:
            raise ValueError(f"PBS_PROCESS is {text}; write a number up to {_NO_TASK}")
        path = environment.get("PBS_DEVICE", "/dev/pbs_plan")
        self._device = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._thread = threading.get_native_id()
        try:
            self._call(ATTACH, _ATTACH.pack(0, self.process, 0, 0, 0, 0, 0, 0))
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    @property
    def is_planned(self) -> bool:
        """Whether the program is part of a plan."""
        return self._device is not None

    def task_end(self) -> int | None:
        """End the present task, and wait for the next one.

        The result is the number of the next task.  ``None``: that was the last one, or the
        program is not part of a plan, or not any more (``is_planned`` is false).  Let the
        program's own work end its loop, not this number.
        """
        if self._device is None:
            return None
        try:
            answer = self._call(TASK_END, _TASK_END.pack(_NO_TASK, _NO_TASK, 0, 0, 0, 0, 0, 0))
        except OSError as error:
            if error.errno != errno.ESRCH:
                raise
            # The plan was dropped, or the present one lacks the process.
            self._close()
            return None
        next_task: int = _TASK_END.unpack(answer)[1]
        return None if next_task == _NO_TASK else next_task

    def left_insns(self) -> int | None:
        """Instructions that are left of the present task; negative: it is longer than planned.

        The count is that of the last time at which the kernel read it.  Needs ``CAP_SYS_NICE``.
        """
        if self._device is None:
            return None
        question = bytearray(_PROCESS.size)
        struct.pack_into("=I", question, 0, self.process)
        answer = self._call(GET_PROCESS, bytes(question))
        planned_insns, retired_insns = struct.unpack_from("=QQ", answer, 32)
        left_insns: int = planned_insns - retired_insns
        return left_insns

    def leave(self) -> None:
        """Leave the plan; the program continues as a normal one."""
        if self._device is None:
            return
        try:
            self._call(DETACH, _DETACH.pack(0))
        except OSError as error:
            if error.errno != errno.ESRCH:
                raise
        finally:
            self._close()

    def _close(self) -> None:
        if self._device is not None:
            os.close(self._device)
            self._device = None

    def _call(self, request: int, record: bytes) -> bytes:
        assert self._device is not None
        if threading.get_native_id() != self._thread:
            raise RuntimeError(
                "another thread is in the plan; call this in the one that made the OwnProcess"
            )
        try:
            return fcntl.ioctl(self._device, request, record)
        except OSError as error:
            reason = self._reason() or error.strerror
            raise OSError(error.errno, reason) from None

    def _reason(self) -> str:
        """Reason that the kernel gives for the last refusal; empty if there is none."""
        assert self._device is not None
        try:
            answer = fcntl.ioctl(self._device, ERROR, bytes(_ERROR.size))
        except OSError:
            return ""
        code, _, _, text = _ERROR.unpack(answer)
        return text.split(b"\0", 1)[0].decode(errors="replace") if code else ""
