# SPDX-License-Identifier: GPL-2.0
"""Planners that answer, in this process and as a command."""

import io
import json
import signal
import sys
import threading
import unittest

from sched_pbs import Case, Options, Plan, Planner, Process, Question, simulate, sweep

from .common import EXAMPLES, SAMPLES, TOP, late_plan

from catch_up import CatchUp  # isort: skip


class Listener(Planner):
    """Planner that keeps the questions, and never answers."""

    def __init__(self) -> None:
        self.questions: list[Question] = []

    def answer(self, question: Question) -> Plan | None:
        self.questions.append(question)
        return None


class Planners(unittest.TestCase):
    def command(self, file: object) -> str:
        return f"command PYTHONPATH={TOP}/python {sys.executable} {file}"

    def test_a_question_has_failures_progress_and_the_rest_of_the_plan(self) -> None:
        plan = late_plan()
        plan.processes[0].deadline_ns = 250_000_000
        listener = Listener()
        simulate(plan, planner=listener)
        question = listener.questions[0]
        failure = question.failures[0]
        self.assertEqual((failure.kind, failure.process, failure.task), ("late", 1, 0))
        self.assertGreater(failure.retired_insns, failure.planned_insns)
        self.assertEqual([process.id for process in question.processes], [1, 2])
        self.assertEqual((question.cpu, question.rate_insns_per_ms), (0, 1_000_000))
        self.assertEqual(question.config.idle_policy, "latest")
        rest = question.remaining
        self.assertEqual(rest.process("far").tasks[0].planned_insns, 50_000_000)
        self.assertIsNone(rest.process("far").tasks[0].real_insns)
        # Counted from the moment at which the answer comes into force.
        deadline_ns = rest.process(1).deadline_ns
        assert deadline_ns is not None
        self.assertLess(deadline_ns, 250_000_000)

    def test_a_command_answers_as_the_class_does(self) -> None:
        here = simulate(late_plan(), planner=CatchUp())
        command = self.command(EXAMPLES / "catch_up.py")
        there = simulate(late_plan(), Options(scheduler=command))
        self.assertGreaterEqual(len(here.replans), 1)
        self.assertEqual(here, there)
        self.assertEqual([replan["refused"] for replan in here.replans], [None] * len(here.replans))

    def test_the_sample_without_the_package_answers_the_same(self) -> None:
        sample = SAMPLES / "own-planner" / "catch_up.py"
        plan = late_plan()
        for process, deadline_ns in zip(plan.processes, (400_000_000, 300_000_000), strict=True):
            process.deadline_ns = deadline_ns
        there = simulate(plan, Options(scheduler=f"command {sys.executable} {sample}"))
        self.assertEqual(simulate(plan, planner=CatchUp()), there)
        # The process with the earlier deadline goes first, whatever the order was before.
        self.assertEqual(there.plans[1].cpus[0].slots[0], 2)

    def test_a_deadline_that_has_passed_goes_first(self) -> None:
        listener = Listener()
        simulate(late_plan(), planner=listener)
        question = listener.questions[0]
        for process, deadline_ns in zip(question.remaining.processes, (1, 0), strict=True):
            process.deadline_ns = deadline_ns
        answer = CatchUp().answer(question)
        assert answer is not None
        self.assertEqual(answer.process(answer.cpus[0].slots[0]).id, 2)

    def test_a_planner_that_computes_for_ever_does_not_keep_an_interrupt_back(self) -> None:
        asked = threading.Event()
        goes_on = threading.Event()

        class Slow(Planner):
            def answer(self, question: Question) -> Plan | None:
                asked.set()
                goes_on.wait()
                return None

        def interrupt() -> None:
            asked.wait()
            main = threading.main_thread().ident
            assert main is not None
            signal.pthread_kill(main, signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with self.assertRaises(KeyboardInterrupt):
            simulate(late_plan(), planner=Slow())
        goes_on.set()

    def test_serve_reads_a_question_and_writes_an_answer(self) -> None:
        listener = Listener()
        simulate(late_plan(), planner=listener)
        question = listener.questions[0]
        text = json.dumps(
            {
                "failures": [vars(failure) | {"new": 1} for failure in question.failures],
                "processes": [vars(process) for process in question.processes],
                "cpu": 0,
                "now_ns": question.now_ns,
                "rate_insns_per_ms": 1,
                # A later version of pbsctl may say more.
                "config": question.config.to_json() | {"new": 1},
                "remaining": question.remaining.to_json() | {"new": {"more": 1}},
                "remaining_toml": question.remaining.dumps_toml(),
            }
        )
        answers = io.StringIO()
        CatchUp().serve(io.StringIO(text), answers)
        plan = Plan.loads(answers.getvalue())
        self.assertEqual((plan.plan_id, plan.dealt_seq), (2, question.failures[-1].seq + 1))
        answers = io.StringIO()
        Listener().serve(io.StringIO(text), answers)
        self.assertEqual(answers.getvalue().strip(), "")

    def test_an_exception_of_a_planner_ends_the_simulation_and_is_raised(self) -> None:
        class Faulty(Planner):
            def answer(self, question: Question) -> Plan | None:
                raise ZeroDivisionError("no answer")

        before = threading.active_count()
        with self.assertRaises(ZeroDivisionError):
            simulate(late_plan(), planner=Faulty())
        with self.assertRaises(ZeroDivisionError):
            sweep([Case(late_plan(), planner=Faulty)] * 3, workers=2)
        self.assertEqual(threading.active_count(), before)

    def test_an_answer_that_is_not_valid_is_an_error(self) -> None:
        class Nonsense(Planner):
            def answer(self, question: Question) -> Plan | None:
                return Plan([Process(1, [])])

        with self.assertRaisesRegex(RuntimeError, "wrote a plan that is not valid"):
            simulate(late_plan(), planner=Nonsense())

    def test_an_error_names_the_class_and_not_how_it_is_asked(self) -> None:
        class Nonsense(Planner):
            def answer(self, question: Question) -> Plan | None:
                return Plan([Process(1, [])])

        class Number(Planner):
            def answer(self, question: Question) -> Plan | None:
                return 5  # type: ignore[return-value]

        with self.assertRaises(RuntimeError) as caught:
            simulate(late_plan(), planner=Nonsense())
        self.assertIn("Nonsense", str(caught.exception))
        self.assertNotIn("/proc/self/fd", str(caught.exception))
        with self.assertRaisesRegex(TypeError, "Number.answer returned 5; return a Plan or None"):
            simulate(late_plan(), planner=Number())

    def test_a_planner_and_a_scheduler_exclude_each_other(self) -> None:
        with self.assertRaisesRegex(ValueError, "leave one out"):
            simulate(late_plan(), Options(scheduler="stretch"), CatchUp())
