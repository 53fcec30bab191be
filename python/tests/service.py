# SPDX-License-Identifier: GPL-2.0
"""A service of the tests that answers like ``pbsd``, which needs the kernel."""

import contextlib
import json
import selectors
import socket
import threading
import unittest
from pathlib import Path
from typing import Any


class Service:
    """Service with answers of the test, which one thread gives in the order of the calls.

    A stream of events continues after each of them, and never ends, as that of ``pbsd``.
    """

    def __init__(self, test: unittest.TestCase, path: Path) -> None:
        self.calls: list[dict[str, Any]] = []
        """Calls in the order of their arrival."""
        self.answers: list[dict[str, Any]] = []
        """Answers to all calls but ``Watch``, the next one first."""
        self.events: list[dict[str, Any]] = []
        """Events of a submission, for connections that watch then."""
        self.may_answer = threading.Event()
        """Calls wait for it."""
        self.may_answer.set()
        self._watching: list[socket.socket] = []
        self._texts: dict[socket.socket, bytes] = {}
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve)
        test.addCleanup(self._close)
        self._thread.start()

    def _close(self) -> None:
        # The thread notices that its listener cannot accept any more.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def _serve(self) -> None:
        with self._listener, self._selector:
            while True:
                for key, _ in self._selector.select():
                    if key.fileobj is not self._listener:
                        self._read(key.data)
                        continue
                    try:
                        connection, _ = self._listener.accept()
                    except OSError:
                        for connection in self._texts:
                            connection.close()
                        return
                    self._texts[connection] = b""
                    self._selector.register(connection, selectors.EVENT_READ, connection)

    def _read(self, connection: socket.socket) -> None:
        # A client that does not wait has left.
        with contextlib.suppress(ConnectionError):
            if part := connection.recv(1 << 16):
                *messages, text = (self._texts[connection] + part).split(b"\0")
                self._texts[connection] = text
                for message in messages:
                    self._answer(connection, json.loads(message))
                return
        self._selector.unregister(connection)
        del self._texts[connection]
        connection.close()

    def _answer(self, connection: socket.socket, call: dict[str, Any]) -> None:
        self.calls.append(call)
        method = call["method"].rpartition(".")[2]
        if method == "Watch":
            self._watching.append(connection)
            return
        if method == "Submit":
            for watching in self._watching:
                for event in self.events:
                    _send(watching, {"parameters": event, "continues": True})
        self.may_answer.wait()
        _send(connection, {"parameters": self.answers.pop(0)})


def _send(connection: socket.socket, message: dict[str, Any]) -> None:
    whole = json.dumps(message).encode() + b"\0"
    # Cut in the middle, as a stream may.
    connection.sendall(whole[:3])
    connection.sendall(whole[3:])
