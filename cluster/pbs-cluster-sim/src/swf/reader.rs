// SPDX-License-Identifier: GPL-2.0
//! A file line by line.

use std::io::{BufRead, Read};

use super::line::{self, Fault};
use super::notes::{Notes, Why};
use super::{Header, Problem, Record, Stop};

/// Longer lines are wrong: a file without an end of line is not taken into memory.
const MAX_LINE_BYTES: u64 = 1 << 16;

/// Iterator over the jobs of a file of any length, with one line in memory at a time.
///
/// ```
/// use pbs_cluster_sim::swf::Reader;
///
/// let text = "; MaxProcs: 64\n1 0 5 60 4 -1 -1 4 300 -1 1 7 2 -1 -1 -1 -1 -1\n";
/// let mut reader = Reader::new(text.as_bytes());
/// let record = reader.next().transpose()?.expect("there is a job");
/// assert_eq!((record.run_s, record.requested_s), (Some(60), Some(300)));
/// assert_eq!(reader.header().cores(), Some(64));
/// # Ok::<(), pbs_cluster_sim::swf::Stop>(())
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    line: u64,
    buffer: Vec<u8>,
    header: Header,
    notes: Notes,
    has_record: bool,
    has_ended: bool,
}

impl<R: BufRead> Reader<R> {
    /// Creates a reader that has read nothing yet.
    pub fn new(from: R) -> Self {
        Self {
            from,
            line: 0,
            buffer: Vec::new(),
            header: Header::default(),
            notes: Notes::default(),
            has_record: false,
            has_ended: false,
        }
    }

    /// Returns the header comments read up to now. The format puts all of them before the first
    /// job.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the number of the last line that was read, counted from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Returns notes on lines that were read only in part, or skipped.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Returns all header comments.
    pub fn into_header(self) -> Header {
        self.header
    }

    fn wrong(&self, message: String) -> Stop {
        let line = self.line;
        Stop::Line(Problem { line, message })
    }

    /// Reads a line into the buffer; `false`: there is none.
    fn next_line(&mut self) -> Result<bool, Stop> {
        self.buffer.clear();
        let mut limited = (&mut self.from).take(MAX_LINE_BYTES);
        let count = limited.read_until(b'\n', &mut self.buffer).map_err(Stop::Io)?;
        if count == 0 {
            return Ok(false);
        }
        self.line += 1;
        if count as u64 == MAX_LINE_BYTES && self.buffer.last() != Some(&b'\n') {
            self.from.skip_until(b'\n').map_err(Stop::Io)?;
            let most = MAX_LINE_BYTES - 1;
            return Err(self.wrong(format!(
                "it is longer than {most} bytes; a job has 18 numbers, and a comment can be \
                 several lines"
            )));
        }
        Ok(true)
    }

    fn next_record(&mut self) -> Result<Option<Record>, Stop> {
        while self.next_line()? {
            // Names in comments have letters of older encodings.
            let text = String::from_utf8_lossy(&self.buffer);
            // Some editors put a mark of the encoding before all.
            let text = text.trim_start_matches('\u{feff}').trim();
            if let Some(comment) = text.strip_prefix(';') {
                self.header.comment(comment);
            } else if !text.is_empty() {
                if !self.has_record && text.starts_with(|c: char| c.is_ascii_alphabetic()) {
                    self.notes.note(Why::Titles, self.line, text);
                    continue;
                }
                self.has_record = true;
                let line = self.line;
                let numbers = line::numbers(text).map_err(|fault| match fault {
                    Fault::Wrong(message) => Stop::Line(Problem { line, message }),
                    Fault::Impossible(message) => Stop::Impossible(Problem { line, message }),
                })?;
                if numbers.has_more {
                    self.notes.note(Why::MoreColumns, line, text);
                }
                let record = Record::of_numbers(&numbers.fields);
                return record.map(Some).map_err(|message| self.wrong(message));
            }
        }
        Ok(None)
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Record, Stop>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let record = self.next_record();
        self.has_ended = matches!(record, Ok(None) | Err(Stop::Io(_)));
        record.transpose()
    }
}
