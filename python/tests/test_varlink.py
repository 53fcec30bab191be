# SPDX-License-Identifier: GPL-2.0
"""The client: against the resource manager of pbsctl, and against a service of the test."""

import contextlib
import json
import re
import socket
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any

from sched_pbs import Job, JobProcess, JobTask, find_pbsctl
from sched_pbs.varlink import NODE, RMS, Connection, NodeService, Refused

from .common import TOP

# A service that does not answer is a failure of the test.
TIMEOUT_S = 60


class Manager(unittest.TestCase):
    """``pbsctl rms serve``, which needs no kernel."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.socket = Path(folder.name, "rms.sock")
        command = [find_pbsctl(), "rms", "serve", "--cluster", "lab=4", "--socket"]
        self.server = subprocess.Popen(
            [*command, str(self.socket)], stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.terminate)
        assert self.server.stderr is not None
        self.addCleanup(self.server.stderr.close)
        while "listening on" not in self.server.stderr.readline():
            self.assertIsNone(self.server.poll())

    def test_a_session_requests_nodes_and_is_notified(self) -> None:
        with (
            Connection(self.socket, RMS, TIMEOUT_S) as calls,
            Connection(self.socket, RMS, TIMEOUT_S) as notices,
        ):
            session = calls.call("Connect", name="tests")["session"]
            heard = notices.stream("Monitor", session=session)
            self.assertEqual(next(heard)["kind"], "views")
            asked = {"cluster": 0, "nodes": 2, "kind": "preemptible"}
            request = calls.call("Request", session=session, asked=asked)["request"]
            notice = next(notice for notice in heard if notice["kind"] == "started")
            self.assertEqual(notice["request"], request)
            self.assertEqual(len(notice["nodes"]), 2)
            calls.call("Disconnect", session=session)
            # The service does not end the stream.
            self.assertTrue(any(notice["kind"] == "closed" for notice in heard))

    def test_a_refusal_is_an_exception_with_its_parameters(self) -> None:
        with Connection(self.socket, RMS, TIMEOUT_S) as calls:
            with self.assertRaises(Refused) as caught:
                calls.call("Views", session=77)
            self.assertEqual(caught.exception.name, "org.sched-pbs.Rms.NoSuchSession")
            self.assertEqual(caught.exception.parameters, {"session": 77})
            self.assertIn("NoSuchSession (session: 77)", str(caught.exception))
            # The connection is still good.
            info = calls.call("org.varlink.service.GetInfo")
            self.assertIn(RMS, info["interfaces"])


class Node(unittest.TestCase):
    """A service of the test that answers like ``pbsd``: that needs the kernel."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name, "pbs.sock")
        self.calls: list[dict[str, Any]] = []
        self.answers: list[list[dict[str, Any]]] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.listener.close)
        self.listener.bind(str(self.path))
        self.listener.listen()
        thread = threading.Thread(target=self.serve)
        self.addCleanup(thread.join)
        thread.start()

    def serve(self) -> None:
        connection, _ = self.listener.accept()
        with connection, connection.makefile("rb") as messages:
            text = b""
            while byte := messages.read(1):
                if byte != b"\0":
                    text += byte
                    continue
                self.calls.append(json.loads(text))
                text = b""
                parts = [json.dumps(it).encode() + b"\0" for it in self.answers.pop(0)]
                # Cut in the middle, as a stream may.
                whole = b"".join(parts)
                self.may_answer.wait()
                # A client that does not wait has left.
                with contextlib.suppress(BrokenPipeError):
                    connection.sendall(whole[:3])
                    connection.sendall(whole[3:])

    def answer(self, *parts: dict[str, Any]) -> None:
        last = len(parts) - 1
        self.answers.append(
            [{"parameters": part, "continues": at < last} for at, part in enumerate(parts)]
        )

    def test_calls_have_the_parameters_of_the_interface(self) -> None:
        job = Job("night", 10**9, [JobProcess(1, 1 << 20, [JobTask(5)], command=["true"])])
        with NodeService(self.path, TIMEOUT_S) as service:
            for part in ({"version": "0.1.0"}, {"jobs": [{"number": 3}]}, {"plan": "plan_id = 1"}):
                self.answer(part)
            self.assertEqual(service.status(), {"version": "0.1.0"})
            self.assertEqual(service.jobs(state="over", last=5), [{"number": 3}])
            self.assertEqual(service.plan(), "plan_id = 1")
            self.answer({"jobs": [{"number": 4}]})
            self.assertEqual(service.submit(job, hold=True, directory="/tmp"), [{"number": 4}])
            for _ in range(6):
                self.answer({"job": {"number": 4}})
            service.show(4)
            service.cancel("night")
            service.hold(4)
            service.release(4)
            service.alter(4, priority=1, request=job)
            service.explain(job)
            self.answer({"kind": "planned"}, {"kind": "running"}, {"kind": "over"})
            kinds = [event["kind"] for event in service.watch("night")]
            self.assertEqual(kinds, ["planned", "running", "over"])
        self.assertEqual(self.calls[1]["parameters"], {"filter": {"state": "over", "last": 5}})
        submission = self.calls[3]["parameters"]["jobs"][0]
        self.assertEqual(Job.loads(submission["request"]), job)
        self.assertEqual((submission["hold"], submission["directory"]), (True, "/tmp"))
        self.assertEqual(self.calls[5]["parameters"], {"job": {"name": "night"}})
        self.assertTrue(self.calls[-1]["more"])
        # Names of methods, their parameters and the fields of a submission are of the interface.
        text = (TOP / "node/pbs-node-api" / f"{NODE}.varlink").read_text()
        methods = dict(re.findall(r"^method (\w+)\((.*?)\) ->", text, re.M))
        for call in self.calls:
            name = call["method"].removeprefix(NODE + ".")
            self.assertIn(name, methods)
            for parameter in call["parameters"]:
                self.assertIn(f"{parameter}: ", methods[name])
        fields = re.search(r"^type Submission (.*?)^$", text, re.M | re.S)
        assert fields is not None
        for field in submission:
            self.assertRegex(fields[1], rf"\b{field}: ")

    def test_a_late_answer_is_not_that_of_the_next_call(self) -> None:
        self.answer({"version": "0.1.0"})
        self.answer({"plan": "plan_id = 1"})
        self.may_answer.clear()
        with NodeService(self.path, timeout_s=0.01) as service:
            with self.assertRaises(TimeoutError):
                service.status()
            self.may_answer.set()
            with self.assertRaisesRegex(ConnectionError, "connect again"):
                service.plan()

    def test_a_connection_with_a_stream_takes_no_other_call(self) -> None:
        self.answer({"kind": "planned"}, {"kind": "over"})
        self.answer({"plan": "plan_id = 1"})
        with NodeService(self.path, TIMEOUT_S) as service:
            events = service.watch()
            with self.assertRaisesRegex(ConnectionError, "connect again for other calls"):
                service.plan()
            self.assertEqual([event["kind"] for event in events], ["planned", "over"])
            self.assertEqual(service.plan(), "plan_id = 1")

    def test_a_service_that_goes_away_is_named(self) -> None:
        with NodeService(self.path, TIMEOUT_S) as service:
            service._socket.shutdown(socket.SHUT_WR)
            with self.assertRaisesRegex(ConnectionError, "has closed the connection"):
                service.status()

    def test_a_socket_without_a_service_is_named(self) -> None:
        with self.assertRaisesRegex(ConnectionError, "no service listens at /no/socket"):
            NodeService("/no/socket")
        # The thread of the test waits for a connection.
        NodeService(self.path, TIMEOUT_S).close()
