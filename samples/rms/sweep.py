#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A parameter sweep under the resource manager: it takes what others leave.

It keeps a preemptible request as large as its view shows, starts a task on each node, and
gives nodes back as soon as the view shrinks: those whose tasks have run shortest.  Here a
task only lasts; start what you want to have run instead.

Needs the package varlink (https://varlink.org/python/), which any Python 3 runs:
	pip install varlink
	pbsctl rms serve --cluster lab=16 &
	python3 samples/rms/sweep.py
"""

import argparse
import sys
import threading
import time

import varlink

INTERFACE = "org.sched-pbs.Rms"
# Index of the cluster whose nodes it has: the first one of the manager.
CLUSTER = 0


def now_of(cap):
    """Nodes at the begin of a step function."""
    return cap["steps"][0]["nodes"] if cap["steps"] else 0


class Sweep:
    """One session: a connection for calls, and one that is told what happens."""

    def __init__(self, address, task_s, most):
        self.address = address
        self.calls = varlink.Client(address).open(INTERFACE)
        self.task_s = task_s
        self.most = most
        self.session = self.calls.Connect("sweep")["session"]
        self.request = None
        # What the view has shown last.
        self.seen = 0
        # When the task of each node began.
        self.tasks = {}
        self.done = 0
        self.killed = 0

    def say(self, text):
        print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)

    def end_tasks(self, now):
        """Tasks whose time is over have been done; their nodes begin new ones."""
        for node, began in self.tasks.items():
            if now - began >= self.task_s:
                self.done += 1
                self.tasks[node] = now

    def resize(self, nodes):
        """Asks for so many nodes, and gives back those that have done least."""
        now = time.monotonic()
        self.end_tasks(now)
        nodes = min(nodes, self.most)
        if self.request is None:
            if nodes > 0:
                asked = {"cluster": CLUSTER, "nodes": nodes, "kind": "preemptible"}
                self.request = self.calls.Request(self.session, asked)["request"]
            return
        if nodes == len(self.tasks):
            return
        youngest = sorted(self.tasks, key=self.tasks.get, reverse=True)
        released = youngest[: max(0, len(self.tasks) - nodes)]
        update = {"request": self.request, "nodes": nodes, "released": released}
        try:
            if nodes == 0:
                self.calls.Done(self.session, self.request, released)
                self.request = None
            else:
                self.request = self.calls.Update(self.session, update)["request"]
        except varlink.VarlinkError as error:
            # More nodes have come that it has not been told of yet: then it tries again.
            self.say(f"waits: {error.parameters().get('why')}")
            return
        if released:
            wasted = sum(now - self.tasks.pop(node) for node in released)
            self.killed += len(released)
            self.calls.Waste(self.session, int(wasted * 1e9))
            self.say(f"gives back {sorted(released)}")

    def started(self, nodes):
        now = time.monotonic()
        self.end_tasks(now)
        self.tasks = {node: self.tasks.get(node, now) for node in nodes}
        self.say(f"has {sorted(nodes)}")
        if self.seen < len(self.tasks):
            self.resize(self.seen)

    def hear(self, notice):
        kind = notice["kind"]
        if kind == "views":
            # Those of other clusters are not about its nodes.
            if notice["views"]["cluster"] != CLUSTER:
                return
            self.seen = now_of(notice["views"]["preemptible"])
            self.resize(self.seen)
        elif kind == "started" and notice["request"] == self.request:
            self.started(notice["nodes"])
        elif kind == "violation":
            self.say("has kept nodes for too long")

    def run(self, seconds):
        """Does what it is told, for so long."""
        with varlink.Client(self.address) as other:
            told = other.open(INTERFACE)
            stop = threading.Timer(seconds, self.stop)
            stop.daemon = True
            stop.start()
            for notice in told.Monitor(self.session, _more=True):
                if notice["kind"] == "closed":
                    break
                try:
                    self.hear(notice)
                except varlink.VarlinkError as error:
                    # The session may have been ended meanwhile; then that is told next.
                    self.say(f"is refused: {error}")
        self.end_tasks(time.monotonic())
        self.say(f"ended: {self.done} tasks done, {self.killed} killed")

    def stop(self):
        """From another thread, and so on a connection of its own."""
        with varlink.Client(self.address) as client:
            client.open(INTERFACE).Disconnect(self.session)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--socket", default="/run/pbs/rms.sock", help="socket of the manager")
    parser.add_argument("--task", type=float, default=10, help="time of a task, in seconds")
    parser.add_argument("--most", type=int, default=1 << 20, help="greatest number of nodes")
    parser.add_argument("--seconds", type=float, default=3600, help="time to run, in seconds")
    options = parser.parse_args()
    try:
        Sweep(f"unix:{options.socket}", options.task, options.most).run(options.seconds)
    except (OSError, varlink.VarlinkError) as error:
        sys.exit(f"sweep: {error}")


if __name__ == "__main__":
    main()
