# SPDX-License-Identifier: GPL-2.0
"""A program's own place in a plan, and its calls."""

import errno
import os
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

from sched_pbs import OwnProcess, Place, own

from .common import TOP

# Prints the numbers of the calls, and the place of the planned instructions, in C.
NUMBERS = """
#include <stddef.h>
#include <stdio.h>
#include <sched_pbs/task.h>
int main(void)
{
        printf("%lu %lu %lu %lu %zu %zu\\n", (unsigned long)PBS_IOC_ATTACH,
               (unsigned long)PBS_IOC_TASK_END, (unsigned long)PBS_IOC_ERROR,
               (unsigned long)PBS_IOC_GET_PROCESS, offsetof(struct pbs_process, planned_insns),
               offsetof(struct pbs_process, retired_insns));
        return 0;
}
"""


def compiled(source: Path, directory: str, standard: str = "gnu11") -> str:
    """Program that the C compiler makes of a file, without a warning."""
    program = os.path.join(directory, source.stem)
    includes = [f"-I{TOP}/node/pbs-uapi/include", f"-I{TOP}/include/uapi"]
    flags = [f"-std={standard}", "-D_POSIX_C_SOURCE=200809L", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    subprocess.run(["cc", *flags, *includes, str(source), "-o", program], check=True)
    return program


class OwnPlace(unittest.TestCase):
    def test_the_place_comes_from_the_environment(self) -> None:
        place = Place.of_environment(
            {
                "SCHED_PBS_JOB_ID": "12",
                "SCHED_PBS_JOB_NAME": "sort[3]",
                "SCHED_PBS_ARRAY_INDEX": "3",
                "SCHED_PBS_TASK_INSNS": "20000000",
                "SCHED_PBS_CPU": "no",
            }
        )
        self.assertEqual((place.job, place.job_name, place.array_index), (12, "sort[3]", 3))
        self.assertEqual((place.task_insns, place.cpu, place.task), (20_000_000, None, None))

    def test_without_a_plan_the_program_simply_works(self) -> None:
        process = OwnProcess({})
        self.assertFalse(process.is_planned)
        self.assertIsNone(process.task_end())
        self.assertIsNone(process.left_insns())

    def test_a_program_whose_plan_is_gone_continues(self) -> None:
        def answer(_: int, request: int, record: bytes) -> bytes:
            if request == own.TASK_END:
                raise OSError(errno.ESRCH, "no process")
            return record

        with mock.patch("sched_pbs.own.fcntl.ioctl", answer):
            process = OwnProcess({"PBS_PROCESS": "1", "PBS_DEVICE": "/dev/null"})
            self.assertTrue(process.is_planned)
            self.assertIsNone(process.task_end())
            self.assertFalse(process.is_planned)
            self.assertIsNone(process.task_end())
            process.leave()

    def test_only_the_thread_in_the_plan_may_call(self) -> None:
        with mock.patch("sched_pbs.own.fcntl.ioctl", lambda _device, _request, record: record):
            with OwnProcess({"PBS_PROCESS": "1", "PBS_DEVICE": "/dev/null"}) as process:
                errors: list[Exception] = []

                def call() -> None:
                    try:
                        process.task_end()
                    except RuntimeError as error:
                        errors.append(error)

                thread = threading.Thread(target=call)
                thread.start()
                thread.join()
                self.assertIn("another thread is in the plan", str(errors[0]))
            self.assertFalse(process.is_planned)

    def test_a_failure_names_what_to_correct(self) -> None:
        with self.assertRaisesRegex(ValueError, "PBS_PROCESS is 'x'"):
            OwnProcess({"PBS_PROCESS": "x"})
        with self.assertRaisesRegex(ValueError, "4294967296; write a number up to 4294967295"):
            OwnProcess({"PBS_PROCESS": "4294967296"})
        with self.assertRaisesRegex(OSError, "/no/such"):
            OwnProcess({"PBS_PROCESS": "1", "PBS_DEVICE": "/no/such"})
        with self.assertRaisesRegex(OSError, "Inappropriate ioctl"):
            OwnProcess({"PBS_PROCESS": "1", "PBS_DEVICE": "/dev/null"})


class InC(unittest.TestCase):
    def test_calls_and_records_are_those_of_the_header(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            source = Path(directory, "numbers.c")
            source.write_text(NUMBERS)
            compiled(source, directory, "c11")
            program = compiled(source, directory)
            words = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        numbers = [own.ATTACH, own.TASK_END, own.ERROR, own.GET_PROCESS]
        self.assertEqual([int(word) for word in words.split()], [*numbers, 32, 40])

    def test_the_sample_works_with_and_without_a_plan(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            program = compiled(Path(TOP, "samples/c/pbs_tasks.c"), directory)

            def ran(**variables: str) -> subprocess.CompletedProcess[str]:
                return subprocess.run(
                    [program, "2"], env=variables, capture_output=True, text=True, check=False
                )

            alone = ran(SCHED_PBS_DEADLINE_UNIX_NS="5")
            expected = "deadline 5\ntask 0 has ended\ntask 1 has ended\n"
            self.assertEqual((alone.returncode, alone.stdout), (0, expected))
            for process, words in [("x", "Invalid argument"), ("1", "No such file")]:
                refused = ran(PBS_PROCESS=process, PBS_DEVICE="/no/such")
                self.assertEqual(refused.returncode, 1)
                self.assertIn(words, refused.stderr)


if __name__ == "__main__":
    unittest.main()
