// SPDX-License-Identifier: GPL-2.0
//! All sessions, in the order of connection.
//!
//! A pass goes through all of them several times, to find the few for which it has something
//! to do in each of its steps. What it looks at lies side by side.

use crate::session::Marks;
use crate::{AppId, Session};

/// Sessions with their marks, which are at the same places.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    marks: Vec<Marks>,
    sessions: Vec<(AppId, Box<Session>)>,
}

impl Sessions {
    fn place(&self, app: AppId) -> Result<usize, usize> {
        self.sessions.binary_search_by_key(&app, |it| it.0)
    }

    pub(crate) fn get(&self, app: AppId) -> Option<&Session> {
        // The error is the place where the session would be.
        let place = self.place(app).ok()?;
        Some(&self.sessions[place].1)
    }

    pub(crate) fn get_mut(&mut self, app: AppId) -> Option<&mut Session> {
        // The error is the place where the session would be.
        let place = self.place(app).ok()?;
        Some(&mut self.sessions[place].1)
    }

    /// Inserts a session. Returns whether its number was free.
    pub(crate) fn insert(&mut self, app: AppId, session: Session) -> bool {
        let Err(place) = self.place(app) else {
            return false;
        };
        self.marks.insert(place, session.marks());
        self.sessions.insert(place, (app, Box::new(session)));
        true
    }

    pub(crate) fn remove(&mut self, app: AppId) -> Option<Session> {
        // The error is the place where the session would be.
        let place = self.place(app).ok()?;
        self.marks.remove(place);
        Some(*self.sessions.remove(place).1)
    }

    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (AppId, &Session, &Marks)> {
        let both = self.sessions.iter().zip(&self.marks);
        both.map(|((app, session), marks)| (*app, &**session, marks))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (AppId, &mut Session, &mut Marks)> {
        let both = self.sessions.iter_mut().zip(&mut self.marks);
        both.map(|((app, session), marks)| (*app, &mut **session, marks))
    }

    /// Notes what is to be done for a session that has changed.
    pub(crate) fn mark(&mut self, app: AppId) {
        if let Ok(place) = self.place(app) {
            self.marks[place] = self.sessions[place].1.marks();
        }
    }

    /// Whether the marks of all sessions are up to date.
    pub(crate) fn is_marked(&self) -> bool {
        self.iter().all(|(_, session, marks)| session.marks() == *marks)
    }

    /// Returns the sessions whose marks show work.
    pub(crate) fn marked(&self, what: impl Fn(&Marks) -> bool) -> Vec<AppId> {
        let marked = self.iter().filter(|(_, _, marks)| what(marks));
        marked.map(|(app, _, _)| app).collect()
    }
}
