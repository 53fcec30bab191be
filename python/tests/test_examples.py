# SPDX-License-Identifier: GPL-2.0
"""The examples show what Documentation/python.rst says of them."""

import unittest

from .common import late_plan  # finds the folder of the examples

import claim  # isort: skip
import lateness_thresholds  # isort: skip
import own_planner  # isort: skip


class Examples(unittest.TestCase):
    def test_a_greater_sigma_t2_signals_later_and_less_often(self) -> None:
        rows = lateness_thresholds.rows()
        sigmas = [row["sigma_t2_permille"] for row in rows]
        self.assertEqual(sigmas, sorted(sigmas))
        signals = [row["signals"] for row in rows]
        self.assertEqual(signals, sorted(signals, reverse=True))
        self.assertGreater(signals[0], signals[-1])
        over = [row["most_over_permille"] for row in rows]
        self.assertEqual(over, sorted(over))

    def test_an_own_planner_keeps_more_deadlines_than_the_sketch(self) -> None:
        rows = {row["planner"]: row for row in own_planner.rows()}
        own, sketch = rows["late_last"], rows["stretch"]
        self.assertEqual({row["processes"] for row in rows.values()}, {300})
        self.assertGreater(own["kept"], sketch["kept"])
        self.assertLess(own["answers"], sketch["answers"])
        self.assertGreater(own["answers"], 0)

    def test_a_claim_of_a_thesis_holds(self) -> None:
        values = claim.measured()
        figures = claim.claim()["figure"]
        self.assertEqual({figure["name"] for figure in figures}, set(values))
        for figure in figures:
            self.assertTrue(claim.holds(figure, values[figure["name"]]), figure)
        # A figure that does not hold is recognized.
        self.assertFalse(claim.holds({"published": 105}, 104.0))
        self.assertFalse(claim.holds({"at_most": 20_500}, 20_501.0))

    def test_the_plan_of_tests_has_four_tasks(self) -> None:
        self.assertEqual(late_plan().task_count(), 4)
