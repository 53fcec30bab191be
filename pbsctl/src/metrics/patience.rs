// SPDX-License-Identifier: GPL-2.0
//! Answers that are waited for with a bound.

use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// A question that is asked again and again, by one thread at a time.
#[derive(Debug)]
pub(super) struct Patience<T> {
    /// Receiver of an answer that was not there in time.
    late: Option<Receiver<T>>,
}

impl<T: Send + 'static> Patience<T> {
    /// The state before the first question.
    pub(super) fn new() -> Self {
        Self { late: None }
    }

    /// Asks, and waits for the answer for so long. `None`: it did not come. While an earlier
    /// question has no answer, no other is asked, and an answer that comes late is too old.
    pub(super) fn ask(
        &mut self,
        question: impl FnOnce() -> T + Send + 'static,
        within: Duration,
    ) -> Option<T> {
        if let Some(late) = self.late.take() {
            match late.recv_timeout(within) {
                Err(RecvTimeoutError::Timeout) => {
                    self.late = Some(late);
                    return None;
                }
                Ok(_) | Err(RecvTimeoutError::Disconnected) => {}
            }
        }
        let (sender, receiver) = channel();
        let asked = thread::Builder::new().spawn(move || sender.send(question()));
        drop(asked.ok()?);
        match receiver.recv_timeout(within) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Timeout) => {
                self.late = Some(receiver);
                None
            }
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use super::*;

    const LONG: Duration = Duration::from_secs(600);
    const SHORT: Duration = Duration::from_millis(20);

    /// Whoever is asked and says nothing is asked once, and again when the answer has come.
    #[test]
    fn nobody_is_asked_before_the_last_answer() {
        let mut patience = Patience::new();
        assert_eq!(patience.ask(|| 7, LONG), Some(7));
        let (gate, asked) = (Arc::new(Mutex::new(())), Arc::new(AtomicUsize::new(0)));
        let closed = gate.lock().unwrap();
        for _ in 0..5 {
            let (gate, asked) = (gate.clone(), asked.clone());
            let question = move || {
                asked.fetch_add(1, Ordering::SeqCst);
                drop(gate.lock());
                8
            };
            assert_eq!(patience.ask(question, SHORT), None);
        }
        drop(closed);
        // Not the answer to the question of before.
        assert_eq!(patience.ask(|| 9, LONG), Some(9));
        assert!(asked.load(Ordering::SeqCst) <= 1);
    }

    #[test]
    fn a_question_that_panics_has_no_answer() {
        let mut patience = Patience::new();
        assert_eq!(patience.ask(|| panic!("on purpose"), LONG), None::<u32>);
        assert_eq!(patience.ask(|| 1, LONG), Some(1));
    }
}
