# SPDX-License-Identifier: GPL-2.0
"""Answers of a planner of this process to questions of a simulator.

The simulator runs a shell command for each question.  That command only passes one line each way
through two pipes, which the simulator inherits.  No interpreter starts for a question.
"""

import os
import threading
from collections.abc import Callable

from .planner import Planner

_PATIENCE_S = 1.0
"""Time that a planner has to notice that the simulator has ended."""


class Bridge:
    """Two pipes to a simulator, and a thread that answers its questions."""

    def __init__(self) -> None:
        questions, self._asks = os.pipe()
        self._receives, answers = os.pipe()
        # A shell need not accept descriptors of two digits.
        self.command = (
            f"cat >/proc/self/fd/{self._asks} && head -n 1 </proc/self/fd/{self._receives}"
        )
        """LINE of ``--scheduler "command LINE"``."""
        self.descriptors = (self._asks, self._receives)
        """Descriptors that the simulator inherits."""
        self.planner: Planner | None = None
        """Planner that answers."""
        self.error: BaseException | None = None
        """Exception of the planner, which ends the simulator."""
        self._stop: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._serve, args=(questions, answers), daemon=True)

    def start(self, stop: Callable[[], None]) -> None:
        """Answer from now on; the simulator has started, and ``stop`` ends it."""
        self._stop = stop
        # The simulator alone has them now: when it ends, so does the thread.
        os.close(self._asks)
        os.close(self._receives)
        self._thread.start()

    def close(self) -> None:
        """Wait for the thread, after the simulator has ended.

        A planner that still computes an answer, which nobody waits for, is not waited for.
        """
        self._thread.join(timeout=_PATIENCE_S)

    def _serve(self, questions: int, answers: int) -> None:
        with open(questions, encoding="utf-8") as asked, os.fdopen(answers, "w") as out:
            for question in asked:
                try:
                    assert self.planner is not None
                    print(self.planner.reply(question), file=out, flush=True)
                except BaseException as error:
                    self.error = error
                    self._stop()
                    return
