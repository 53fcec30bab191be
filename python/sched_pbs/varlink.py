# SPDX-License-Identifier: GPL-2.0
"""Client of the services: varlink over a unix socket.

The interfaces are ``node/pbs-node-api/org.sched-pbs.Node.varlink`` (``pbsd``) and
``rms/pbs-rms-api/org.sched-pbs.Rms.varlink`` (``pbsctl rms serve``).  A message is a JSON object
that ends with a zero byte (varlink.org).
"""

import contextlib
import json
import os
import pathlib
import socket
from collections.abc import Iterator, Mapping
from typing import Any, Self

from .job import Job

NODE = "org.sched-pbs.Node"
RMS = "org.sched-pbs.Rms"

_CALL_BYTES = 1 << 20
"""Largest call that the services take."""

_CLOSED = "the service has closed the connection: it has ended, or it refuses the call; connect again"
_ENDED = "this connection ended with the error or the close() before; connect again"
_STREAMS = "this connection receives a stream; connect again for other calls"


class Refused(RuntimeError):
    """Error that a service returned for a call."""

    def __init__(self, name: str, parameters: dict[str, Any]) -> None:
        words = ", ".join(f"{key}: {value}" for key, value in parameters.items())
        super().__init__(
            f"{name.rpartition('.')[2]}{' (' if words else ''}{words}{')' * bool(words)}"
        )
        self.name = name
        """Name of the error, such as ``org.sched-pbs.Node.Declined``."""
        self.parameters = parameters
        """Its parameters."""


class Connection:
    """Connection to a service; one call at a time.

    A call without an answer for ``timeout_s`` raises ``TimeoutError``; None: it waits.  Any error
    but ``Refused`` closes the connection, since the answer may still arrive.
    """

    def __init__(
        self, path: str | pathlib.Path, interface: str, timeout_s: float | None = None
    ) -> None:
        self.interface = interface
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout_s)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise ConnectionError(
                f"no service listens at {path}: {error}; start it, or name its socket"
            ) from error
        self._rest = b""
        self._is_streaming = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Result of a method; parameters that are None are left out."""
        self._send(method, parameters, more=False)
        return self._receive()[0]

    def stream(self, method: str, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Results of a method that answers more than once.

        The method is called at once.  Other calls need another connection until the last result.
        """
        self._send(method, parameters, more=True)
        self._is_streaming = True
        return self._results()

    def _results(self) -> Iterator[dict[str, Any]]:
        while self._is_streaming:
            result, self._is_streaming = self._receive()
            yield result

    def _send(self, method: str, parameters: Mapping[str, Any], more: bool) -> None:
        name = method if "." in method else f"{self.interface}.{method}"
        given = {key: value for key, value in parameters.items() if value is not None}
        message = {"method": name, "parameters": given} | ({"more": True} if more else {})
        text = json.dumps(message).encode() + b"\0"
        if len(text) > _CALL_BYTES:
            raise ValueError(
                f"this call has {len(text)} bytes, and the service takes {_CALL_BYTES}; submit "
                "fewer jobs at once, or with a smaller environment="
            )
        # JSON of other languages refuses a lone surrogate: a byte that is not UTF-8.
        if not _is_utf8(_text(message)):
            bad = [key for key, value in given.items() if not _is_utf8(_text(value))]
            where = ", ".join(bad)
            raise ValueError(
                f"{where} has a name or a text that is not UTF-8; name another, such as "
                "directory= for a working directory"
            )
        self._check_open()
        if self._is_streaming:
            raise ConnectionError(_STREAMS)
        with self._closing_on_error():
            try:
                self._socket.sendall(text)
            except (BrokenPipeError, ConnectionResetError) as error:
                raise ConnectionError(_CLOSED) from error

    def _receive(self) -> tuple[dict[str, Any], bool]:
        self._check_open()
        with self._closing_on_error():
            while b"\0" not in self._rest:
                try:
                    part = self._socket.recv(1 << 16)
                except ConnectionResetError as error:
                    raise ConnectionError(_CLOSED) from error
                if not part:
                    raise ConnectionError(_CLOSED)
                self._rest += part
            text, self._rest = self._rest.split(b"\0", 1)
            message = json.loads(text)
        parameters = message.get("parameters") or {}
        if message.get("error"):
            self._is_streaming = False
            raise Refused(message["error"], parameters)
        return parameters, bool(message.get("continues"))

    def _check_open(self) -> None:
        if self._socket.fileno() < 0:
            raise ConnectionError(_ENDED)

    @contextlib.contextmanager
    def _closing_on_error(self) -> Iterator[None]:
        """Close the socket on any exception: the next call would read this one's answer."""
        try:
            yield
        except BaseException:
            self._socket.close()
            raise


class NodeService(Connection):
    """Service ``pbsd`` of a node.  Jobs are named by their number or their name."""

    def __init__(
        self, path: str | pathlib.Path | None = None, timeout_s: float | None = None
    ) -> None:
        named = path or os.environ.get("PBS_SOCKET") or "/run/pbs/pbs.sock"
        super().__init__(named, NODE, timeout_s)

    def status(self) -> dict[str, Any]:
        """State of the service."""
        return self.call("Status")

    def jobs(
        self,
        state: str | None = None,
        uid: int | None = None,
        name: str | None = None,
        last: int | None = None,
    ) -> list[dict[str, Any]]:
        """States of jobs, one record each, the oldest first; ``last``: so many that are over."""
        given = {"state": state, "uid": uid, "name": name, "last": last}
        filter_ = {key: value for key, value in given.items() if value is not None}
        return list(self.call("List", filter=filter_)["jobs"])

    def show(self, job: int | str) -> dict[str, Any]:
        """All details of a job."""
        return self.call("Show", job=_key(job))

    def submit(self, *jobs: Job, **more: Any) -> list[dict[str, Any]]:
        """Submit jobs: all of them, or none.

        ``more`` has further fields of ``Submission``: ``directory``, ``environment``, ``hold``,
        ``after``, ``best_effort`` and others.
        """
        submissions = [_submission(job, more) for job in jobs]
        return list(self.call("Submit", jobs=submissions)["jobs"])

    def explain(self, job: Job, **more: Any) -> dict[str, Any]:
        """Answer that a job would get now; nothing changes."""
        return self.call("Explain", job=_submission(job, more))

    def cancel(self, job: int | str) -> dict[str, Any]:
        """Cancel a job."""
        return self.call("Cancel", job=_key(job))

    def hold(self, job: int | str) -> dict[str, Any]:
        """Hold a waiting job."""
        return self.call("Hold", job=_key(job))

    def release(self, job: int | str) -> dict[str, Any]:
        """Release a held job."""
        return self.call("Release", job=_key(job))

    def alter(
        self,
        job: int | str,
        deadline_ns: int | None = None,
        priority: int | None = None,
        request: Job | None = None,
    ) -> dict[str, Any]:
        """Change the deadline or the priority of a job, or the job itself while it waits."""
        text = None if request is None else request.dumps_toml()
        given = {"deadline_ns": deadline_ns, "priority": priority, "request": text}
        alteration = {key: value for key, value in given.items() if value is not None}
        return self.call("Alter", job=_key(job), alteration=alteration)

    def plan(self) -> str | None:
        """Plan of all jobs in TOML, for operators; None: nothing is planned."""
        text = self.call("Plan").get("plan")
        return None if text is None else str(text)

    def watch(self, job: int | str | None = None) -> Iterator[dict[str, Any]]:
        """Events from now on, of all jobs or of one."""
        return self.stream("Watch", job=None if job is None else _key(job))


def _key(job: int | str) -> dict[str, Any]:
    return {"number": job} if isinstance(job, int) else {"name": job}


def _submission(job: Job, more: dict[str, Any]) -> dict[str, Any]:
    # Bytes that are not UTF-8 are surrogates, which JSON of other languages refuses.
    variables = [
        {"name": name, "value": value}
        for name, value in os.environ.items()
        if _is_utf8(name) and _is_utf8(value)
    ]
    return {
        "file": f"{job.name}.toml",
        "request": job.dumps_toml(),
        "directory": os.getcwd(),
        "umask": _umask(),
        "environment": variables,
        **more,
    }


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _umask() -> int:
    """Mask of this process; setting it, to read it, would give other threads a wrong one."""
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8", errors="replace")
    for line in status.splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    raise OSError("/proc/self/status has no line Umask; Linux 4.7 or later is needed")
