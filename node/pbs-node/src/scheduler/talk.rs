// SPDX-License-Identifier: GPL-2.0
//! One question at a time to a command, within its time.

use std::time::Instant;

use pbs_launch::leave_session_in;
use pbs_sim::Conversation;

use super::SchedulerCommand;

/// Interval at which an answer is looked for; the end of the command is noticed at once.
pub(crate) const LOOK_MS: i32 = 5;

/// The question that is open, and commands that were killed.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    open: Option<Open>,
    /// Commands that were killed and have not ended yet.
    dying: Vec<Conversation>,
}

/// A question without an answer.
#[derive(Debug)]
struct Open {
    conversation: Conversation,
    begun: Instant,
    /// Time at which the command had all of the question.
    asked: Option<Instant>,
}

impl Open {
    /// Whether the time of the command is over. It counts from when the command has all of the
    /// question, and has the same time to read that.
    fn is_late(&mut self, command: &SchedulerCommand) -> bool {
        if self.asked.is_none() && self.conversation.has_asked() {
            self.asked = Some(Instant::now());
        }
        self.asked.unwrap_or(self.begun).elapsed() >= command.timeout
    }
}

impl Talk {
    /// Asks the command, which is run in a session of its own. The question before is closed.
    ///
    /// # Errors
    ///
    /// The command could not be run, and why.
    pub(crate) fn ask(
        &mut self,
        command: &SchedulerCommand,
        question: Vec<u8>,
    ) -> Result<(), String> {
        self.close();
        // An answer has the work of the question, and at most one job more.
        let max_bytes = question.len().saturating_mul(8).max(1 << 20);
        let SchedulerCommand { line, run_as, .. } = command;
        let asked = Conversation::start_with(line, *run_as, question, leave_session_in);
        let conversation = asked.map_err(|why| why.to_string())?;
        let conversation = conversation.at_most(max_bytes);
        let mut open = Open { conversation, begun: Instant::now(), asked: None };
        open.is_late(command);
        self.open = Some(open);
        Ok(())
    }

    /// Looks for the text of the answer, without waiting; `None`: there is none yet. The question
    /// is closed with its answer, or when its time is over.
    pub(crate) fn look(&mut self, command: &SchedulerCommand) -> Option<Result<String, String>> {
        let open = self.open.as_mut()?;
        let answer = match open.conversation.look_text() {
            Some(answer) => answer.map_err(|why| why.to_string()),
            None if !open.is_late(command) => return None,
            None => Err(format!(
                "did not answer within {}",
                pbs_text::span(u64::try_from(command.timeout.as_nanos()).unwrap_or(u64::MAX))
            )),
        };
        self.close();
        Some(answer)
    }

    /// Closes the question. A command that has not ended is killed; nobody waits for it.
    pub(crate) fn close(&mut self) {
        self.dying.retain_mut(|dying| !dying.has_ended());
        if let Some(Open { mut conversation, .. }) = self.open.take() {
            conversation.kill();
            if !conversation.has_ended() {
                self.dying.push(conversation);
            }
        }
    }

    /// Whether that process is the command's, whose end is nobody else's business; and whether
    /// it has ended.
    pub(crate) fn has_ended(&mut self, pid: i32) -> Option<bool> {
        let open = self.open.iter_mut().map(|open| &mut open.conversation);
        let mut all = open.chain(&mut self.dying);
        let own = all.find(|conversation| u32::try_from(pid) == Ok(conversation.pid()))?;
        Some(own.has_ended())
    }
}
