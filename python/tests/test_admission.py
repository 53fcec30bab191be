# SPDX-License-Identifier: GPL-2.0
"""A planner that admits jobs, asked by ``pbsctl job explain``."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

from sched_pbs import Core, Job, JobProcess, JobTask, Machine, Node, find_pbsctl

from .common import TOP

EXAMPLE = TOP / "python" / "examples" / "least_loaded.py"
MS = 1_000_000


def job(name: str, deadline_ms: int, tasks_ms: list[int]) -> Job:
    """Job of one process on CPUs with a million instructions a millisecond."""
    tasks = [JobTask(length * MS) for length in tasks_ms]
    process = JobProcess(1, 4096, tasks, command=["true"], attaches="itself")
    return Job(name, deadline_ms * MS, [process])


class Admissions(unittest.TestCase):
    def explained(self, jobs: list[Job]) -> list[dict[str, Any]]:
        cores = [Core(f"cpu{cpu}", cpu=cpu, rate_insns_per_s=1_000 * MS) for cpu in range(2)]
        machine = Machine([Node("lab", 1 << 28, cores)])
        with tempfile.TemporaryDirectory() as folder:
            machine.write(Path(folder) / "lab.json")
            for number, one in enumerate(jobs):
                one.write(Path(folder) / f"{number}.json")
            files = [f"{number}.json" for number in range(len(jobs))]
            command = [find_pbsctl(), "--json", "job", "explain", *files]
            command += ["--machine", "lab.json", "--history", "none.db"]
            command += ["--admission", f"command {sys.executable} {EXAMPLE}"]
            command += ["--admission-timeout", "60"]
            environment = {**os.environ, "PYTHONPATH": str(TOP / "python")}
            ran = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            self.assertEqual(ran.stderr, "")
            answers: list[dict[str, Any]] = json.loads(ran.stdout)["jobs"]
            return answers

    def test_jobs_go_to_the_cpu_with_the_least_work_until_one_does_not_fit(self) -> None:
        jobs = [
            job("one", 1000, [100, 200]),
            job("two", 1000, [200]),
            job("three", 1000, [400]),
            job("four", 1000, [700]),
        ]
        answers = [one["admission"] for one in self.explained(jobs)]
        verdicts = [answer["verdict"] for answer in answers]
        self.assertEqual(verdicts, ["admitted", "admitted", "admitted", "declined"])
        self.assertIn("CPU 0 would need 1000 ms of 765", answers[3]["why"])
        # The plan of the third has all three, and process 1 of each job has a number of its own.
        self.assertEqual(answers[2]["plan"].count("[[process]]"), 3)
        self.assertEqual(answers[2]["plan"].count("[[cpu]]"), 2)
