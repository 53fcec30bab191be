# SPDX-License-Identifier: GPL-2.0
"""The client: against the resource manager of pbsctl, and against a service of the test."""

import os
import re
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from sched_pbs import Job, JobProcess, JobTask, find_pbsctl
from sched_pbs.varlink import NODE, RMS, Connection, NodeService, Refused

from .common import TOP
from .service import Service

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


class Calls(unittest.TestCase):
    """Calls that no service would take, and services that end."""

    def setUp(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX)
        self.addCleanup(theirs.close)
        self.addCleanup(ours.close)
        self.theirs = theirs
        with mock.patch("sched_pbs.varlink.socket.socket") as made:
            made.return_value = mock.Mock(wraps=ours, connect=lambda _: None)
            self.service = NodeService("/no/such", TIMEOUT_S)

    def test_a_call_that_is_too_large_says_what_to_do(self) -> None:
        with self.assertRaisesRegex(ValueError, "takes 1048576; submit fewer jobs at once"):
            self.service.call("Status", text="x" * (1 << 20))

    def test_a_text_that_is_not_utf8_is_named(self) -> None:
        with mock.patch("os.getcwd", return_value="/tmp/\udcff"):
            with self.assertRaisesRegex(ValueError, "jobs has a name.*directory="):
                self.service.submit(Job("one", 10**9, [JobProcess(1, 1 << 20, [JobTask(5)])]))

    def test_a_service_that_ends_is_named(self) -> None:
        self.theirs.close()
        with self.assertRaisesRegex(ConnectionError, "it has ended, or it refuses the call"):
            self.service.status()


class Node(unittest.TestCase):
    """A service of the test that answers like ``pbsd``: that needs the kernel."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name, "pbs.sock")
        self.service = Service(self, self.path)

    def test_calls_have_the_parameters_of_the_interface(self) -> None:
        job = Job("night", 10**9, [JobProcess(1, 1 << 20, [JobTask(5)], command=["true"])])
        answers: list[dict[str, Any]] = [
            {"version": "0.1.0"},
            {"jobs": [{"number": 3}]},
            {"plan": "plan_id = 1"},
        ]
        self.service.answers = [*answers, {"jobs": [{"number": 4}]}, *[{"job": {}}] * 6]
        self.service.events = [{"kind": "planned"}, {"kind": "running"}, {"kind": "over"}]
        with (
            NodeService(self.path, TIMEOUT_S) as watching,
            NodeService(self.path, TIMEOUT_S) as service,
        ):
            events = watching.watch("night")
            self.assertEqual(service.status(), {"version": "0.1.0"})
            self.assertEqual(service.jobs(state="over", last=5), [{"number": 3}])
            self.assertEqual(service.plan(), "plan_id = 1")
            self.assertEqual(service.submit(job, hold=True, directory="/tmp"), [{"number": 4}])
            service.show(4)
            service.cancel("night")
            service.hold(4)
            service.release(4)
            service.alter(4, priority=1, request=job)
            service.explain(job)
            kinds = [next(events)["kind"] for _ in range(3)]
            self.assertEqual(kinds, ["planned", "running", "over"])
        named = {call["method"].removeprefix(NODE + "."): call for call in self.service.calls}
        self.assertEqual(len(named), 11)
        self.assertEqual(named["List"]["parameters"], {"filter": {"state": "over", "last": 5}})
        submission = named["Submit"]["parameters"]["jobs"][0]
        self.assertEqual(Job.loads(submission["request"]), job)
        self.assertEqual((submission["hold"], submission["directory"]), (True, "/tmp"))
        self.assertEqual(named["Cancel"]["parameters"], {"job": {"name": "night"}})
        self.assertTrue(named["Watch"]["more"])
        # Names of methods, their parameters and the fields of a submission are of the interface.
        text = (TOP / "node/pbs-node-api" / f"{NODE}.varlink").read_text()
        methods = dict(re.findall(r"^method (\w+)\((.*?)\) ->", text, re.M))
        for name, call in named.items():
            self.assertIn(name, methods)
            for parameter in call["parameters"]:
                self.assertIn(f"{parameter}: ", methods[name])
        fields = re.search(r"^type Submission (.*?)^$", text, re.M | re.S)
        assert fields is not None
        for field in submission:
            self.assertRegex(fields[1], rf"\b{field}: ")

    def test_a_late_answer_is_not_that_of_the_next_call(self) -> None:
        self.service.answers = [{"version": "0.1.0"}, {"plan": "plan_id = 1"}]
        self.service.may_answer.clear()
        with NodeService(self.path, timeout_s=0.01) as service:
            with self.assertRaises(TimeoutError):
                service.status()
            self.service.may_answer.set()
            with self.assertRaisesRegex(ConnectionError, "connect again"):
                service.plan()

    def test_a_connection_with_a_stream_takes_no_other_call(self) -> None:
        self.service.answers = [{"plan": "plan_id = 1"}]
        with NodeService(self.path, TIMEOUT_S) as service:
            service.watch()
            with self.assertRaisesRegex(ConnectionError, "connect again for other calls"):
                service.plan()

    def test_what_is_not_utf8_in_the_environment_is_no_part_of_a_submission(self) -> None:
        job = Job("night", 10**9, [JobProcess(1, 1 << 20, [JobTask(5)], command=["true"])])
        self.service.answers = [{"jobs": []}]
        variables = {b"SAID": "für".encode(), b"LATIN": b"f\xfcr", b"f\xfcr": b"1"}
        with (
            NodeService(self.path, TIMEOUT_S) as service,
            mock.patch.dict(os.environb, variables, clear=True),
            mock.patch.object(os, "umask", side_effect=AssertionError("other threads see it")),
        ):
            service.submit(job)
        submission = self.service.calls[0]["parameters"]["jobs"][0]
        self.assertEqual(submission["environment"], [{"name": "SAID", "value": "für"}])
        self.assertEqual(submission["umask"], umask())

    def test_a_service_that_goes_away_is_named(self) -> None:
        with NodeService(self.path, TIMEOUT_S) as service:
            service._socket.shutdown(socket.SHUT_WR)
            with self.assertRaisesRegex(ConnectionError, "has closed the connection"):
                service.status()

    def test_a_socket_without_a_service_is_named(self) -> None:
        with self.assertRaisesRegex(ConnectionError, "no service listens at /no/socket"):
            NodeService("/no/socket")


def umask() -> int:
    """Mask of this process, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
