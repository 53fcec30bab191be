// SPDX-License-Identifier: GPL-2.0
//! Parser and display of requests.
//!
//! ```text
//! request = ["rset="] chunks {"," job-wide} ["," "place=" place] ["," "avoid=" node {":" node}]
//! chunks  = [count ":"] chunk {"+" [count ":"] chunk}
//! chunk   = item {":" item}
//! item    = name "=" value
//! place   = [free | pack | scatter] [":" (excl | shared)]
//! ```
//!
//! Spaces may be around `+` and `,`. A request has at most [`RSET_BYTES`] bytes, [`RSET_CHUNKS`]
//! chunks that differ, [`CHUNK_ITEMS`] resources in one of them, and avoids [`AVOIDED_NODES`] nodes.
//! Services read requests of users whom nobody knows, and what is planned of one grows with its
//! chunks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use crate::cursor::{is_of_word, Cursor};
use crate::size::{size, too_large, Size};
use crate::{
    format_size, Arrangement, Chunk, Error, Item, Placement, Rset, Sharing, Value, BUILT_IN,
};

/// Greatest length of a request, in bytes.
pub const RSET_BYTES: usize = 64 << 10;
/// Greatest number of chunks that are written one by one; each may be wanted many times.
pub const RSET_CHUNKS: usize = 256;
/// Greatest number of resources in a chunk, and of the job as a whole.
pub const CHUNK_ITEMS: usize = 64;
/// Greatest number of nodes that a request avoids.
pub const AVOIDED_NODES: usize = 64;

const PLACES: &str = "write free, pack or scatter, then :excl or :shared: place=scatter:excl";

impl FromStr for Rset {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.len() > RSET_BYTES {
            let message = format!(
                "a request is at most {RSET_BYTES} bytes long, and this is longer; write chunks \
                 that are alike once, with their number: 100:ncpus=4"
            );
            return Err(Error::new(1, message));
        }
        let mut cursor = Cursor::new(text);
        cursor.skip_spaces();
        if let Some(error) = of_other_system(&cursor, text) {
            return Err(error);
        }
        cursor.take("rset=");
        let chunks = chunks(&mut cursor)?;
        let mut job_wide: Vec<Item> = Vec::new();
        let mut place = None;
        let mut avoid = Vec::new();
        loop {
            cursor.skip_spaces();
            if cursor.is_at_end() {
                break;
            }
            if !cursor.take(",") {
                return Err(unexpected(&cursor));
            }
            cursor.skip_spaces();
            let start = cursor;
            if cursor.take("place=") {
                if place.is_some() {
                    return Err(start.error("place stands here again; write it once"));
                }
                place = Some(read_place(&mut cursor)?);
                continue;
            }
            if cursor.take("avoid=") {
                if !avoid.is_empty() {
                    return Err(start.error("avoid stands here again; write it once"));
                }
                avoid = read_avoid(&mut cursor)?;
                continue;
            }
            let item = item(&mut cursor)?;
            if job_wide.iter().any(|other| other.resource == item.resource) {
                return Err(twice(&start, &item, "the job as a whole"));
            }
            if job_wide.len() == CHUNK_ITEMS {
                return Err(too_many_items(&start, "the job as a whole"));
            }
            job_wide.push(item);
        }
        let rset = Self { chunks, job_wide, place: place.unwrap_or_default(), avoid };
        check_sums(&rset)?;
        Ok(rset)
    }
}

/// Returns the error for a request in the words of PBS Pro (`select=`) or Torque (`nodes=`,
/// `ppn=`), with the request in words of this system.
fn of_other_system(at: &Cursor<'_>, text: &str) -> Option<Error> {
    const MOST_BYTES: usize = 200;
    const EXAMPLE: &str = "2:ncpus=16:mem=32g";
    let text = text.trim();
    let (rest, of): (String, _) = match (text.strip_prefix("select="), text.strip_prefix("nodes="))
    {
        (Some(rest), _) => (rest.into(), "select= is of PBS Pro"),
        (_, Some(rest)) if text.contains(":ppn=") => {
            (rest.replace(":ppn=", ":ncpus="), "nodes= and ppn= are of Torque")
        }
        _ => return None,
    };
    let is_one = rest.len() < MOST_BYTES && rest.parse::<Rset>().is_ok();
    let example = if is_one { rest.as_str() } else { EXAMPLE };
    Some(at.error(format!("{of}; write the number of chunks and a chunk: rset={example}")))
}

/// Returns the error for an unexpected character where an item, a chunk or the request could have
/// ended.
fn unexpected(cursor: &Cursor<'_>) -> Error {
    let found = cursor.found();
    cursor.error(format!(
        "{found} can't be here; write : before the next resource of a chunk, + before the \
         next chunk, a comma before what the job as a whole needs"
    ))
}

fn twice(at: &Cursor<'_>, item: &Item, of: &str) -> Error {
    let name = &item.resource;
    at.error(format!("{name} of {of} stands here again; write it once"))
}

fn too_many_items(at: &Cursor<'_>, of: &str) -> Error {
    at.error(format!("{of} has at most {CHUNK_ITEMS} resources; leave some out"))
}

fn chunks(cursor: &mut Cursor<'_>) -> Result<Vec<Chunk>, Error> {
    let mut chunks = Vec::new();
    loop {
        cursor.skip_spaces();
        if chunks.len() == RSET_CHUNKS {
            return Err(cursor.error(format!(
                "a request has at most {RSET_CHUNKS} chunks that are written one by one; write \
                 those that are alike once, with their number: 100:ncpus=4"
            )));
        }
        chunks.push(chunk(cursor)?);
        let mut next = *cursor;
        next.skip_spaces();
        if !next.take("+") {
            return Ok(chunks);
        }
        *cursor = next;
    }
}

fn chunk(cursor: &mut Cursor<'_>) -> Result<Chunk, Error> {
    let start = *cursor;
    let digits = cursor.take_while(|c| c.is_ascii_digit());
    let mut count = 1;
    if !digits.is_empty() && cursor.take(":") {
        count = digits.parse().map_err(|_| start.error(too_large(digits)))?;
        if count == 0 {
            return Err(start.error("0 chunks are none; write 1 or more, or leave the chunk out"));
        }
    } else {
        // A name may begin with a digit, as long as it is none.
        *cursor = start;
    }
    let mut items: Vec<Item> = Vec::new();
    loop {
        let start = *cursor;
        let item = item(cursor)?;
        if items.iter().any(|other| other.resource == item.resource) {
            return Err(twice(&start, &item, "the chunk"));
        }
        if items.len() == CHUNK_ITEMS {
            return Err(too_many_items(&start, "a chunk"));
        }
        items.push(item);
        if !cursor.take(":") {
            return Ok(Chunk { count, items });
        }
    }
}

fn item(cursor: &mut Cursor<'_>) -> Result<Item, Error> {
    let start = *cursor;
    let resource = cursor.take_while(is_of_word);
    if resource.is_empty() {
        let found = cursor.found();
        return Err(start.error(format!(
            "a resource must be here, not {found}; write it with its value: ncpus=4"
        )));
    }
    if !cursor.take("=") {
        let is_number = resource.bytes().all(|byte| byte.is_ascii_digit());
        let example = if is_number {
            format!("{resource}:ncpus=4 for {resource} chunks")
        } else {
            format!("{resource}=1")
        };
        return Err(cursor.error(format!("{resource} has no value; write {example}")));
    }
    if resource == "place" {
        return Err(start.error("place belongs to the whole request; write a comma before it"));
    }
    let resource = resource.to_string();
    let value = value(cursor, &resource)?;
    Ok(Item { resource, value })
}

fn value(cursor: &mut Cursor<'_>, resource: &str) -> Result<Value, Error> {
    let start = *cursor;
    let text = cursor.take_while(is_of_word);
    if text.is_empty() {
        let found = cursor.found();
        return Err(start.error(format!(
            "{resource} must have a value here, not {found}; write {resource}=4 or, for an \
             attribute, {resource}=name"
        )));
    }
    match size(text) {
        Size::Is(amount) => Ok(Value::Amount(amount)),
        Size::TooLarge => Err(start.error(too_large(text))),
        Size::No if BUILT_IN.contains(&resource) => {
            let example = match resource {
                "mem" | "vmem" => "512m or 10g",
                _ => "4",
            };
            Err(start.error(format!(
                "{resource} is counted, and {text} is no number; write one as {example}"
            )))
        }
        Size::No => Ok(Value::Word(text.to_string())),
    }
}

fn read_place(cursor: &mut Cursor<'_>) -> Result<Placement, Error> {
    let mut place = Placement::default();
    let mut has_arrangement = false;
    // The arrangement may be missing, and its colon then may.
    cursor.take(":");
    loop {
        let start = *cursor;
        let word = cursor.take_while(|c| is_of_word(c) || c == '=');
        let arrangement = match word {
            "free" => Some(Arrangement::Free),
            "pack" => Some(Arrangement::Pack),
            "scatter" => Some(Arrangement::Scatter),
            _ => None,
        };
        let sharing = match word {
            "excl" | "exclusive" => Some(Sharing::Exclusive),
            "shared" => Some(Sharing::Shared),
            _ => None,
        };
        match (arrangement, sharing) {
            (Some(arrangement), _) if !has_arrangement && place.sharing.is_none() => {
                place.arrangement = arrangement;
                has_arrangement = true;
            }
            (_, Some(sharing)) if place.sharing.is_none() => place.sharing = Some(sharing),
            (None, None) if word.is_empty() => {
                let found = start.found();
                return Err(start.error(format!("no place can begin with {found}; {PLACES}")));
            }
            (None, None) => return Err(start.error(format!("there is no place {word}; {PLACES}"))),
            _ => return Err(start.error(format!("{word} is too much here; {PLACES}"))),
        }
        if !cursor.take(":") {
            return Ok(place);
        }
    }
}

/// Reads names of nodes: `n01:n02`.
fn read_avoid(cursor: &mut Cursor<'_>) -> Result<Vec<String>, Error> {
    let mut names = BTreeSet::new();
    loop {
        let start = *cursor;
        let name = cursor.take_while(is_of_word);
        if name.is_empty() {
            let found = start.found();
            return Err(start.error(format!(
                "the name of a node must be here, not {found}; write avoid=n01:n02"
            )));
        }
        names.insert(name.to_string());
        if names.len() > AVOIDED_NODES {
            return Err(start.error(format!(
                "a request avoids at most {AVOIDED_NODES} nodes; ask for an attribute of the \
                 others instead"
            )));
        }
        if !cursor.take(":") {
            return Ok(names.into_iter().collect());
        }
    }
}

/// All chunks together have to fit into 64 bits, so that nobody after this has to ask.
fn check_sums(rset: &Rset) -> Result<(), Error> {
    let mut counts = rset.chunks.iter().map(|chunk| chunk.count);
    let count = counts.try_fold(0u64, u64::checked_add);
    if count.is_none() {
        return Err(Error::new(1, "there are too many chunks; ask for fewer"));
    }
    let of_chunks = rset.chunks.iter();
    let of_chunks = of_chunks.flat_map(|chunk| chunk.items.iter().map(|item| (chunk.count, item)));
    let of_job = rset.job_wide.iter().map(|item| (1, item));
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (count, item) in of_chunks.chain(of_job) {
        let Value::Amount(amount) = item.value else {
            continue;
        };
        let name = item.resource.as_str();
        let sum = sums.entry(name).or_default();
        let more = count.checked_mul(amount);
        *sum = more.and_then(|more| sum.checked_add(more)).ok_or_else(|| {
            let most = u64::MAX;
            let message =
                format!("all chunks together ask for more {name} than {most}; ask for less");
            Error::new(1, message)
        })?;
    }
    Ok(())
}

/// Resources with their values, as a node has them: `ncpus=32:mem=1t:arch=linux`.
///
/// A resource stands there once if it is counted; of an attribute all words that are
/// right stand there, each once: `net=IB:net=Ethernet`.
///
/// # Errors
///
/// As for the chunks of a request.
pub fn parse_items(text: &str) -> Result<Vec<Item>, Error> {
    let mut cursor = Cursor::new(text);
    let mut items: Vec<Item> = Vec::new();
    cursor.skip_spaces();
    loop {
        let start = cursor;
        let item = item(&mut cursor)?;
        let is_word = matches!(item.value, Value::Word(_));
        let clashes = items.iter().any(|other| {
            let is_other_word = is_word && matches!(other.value, Value::Word(_));
            other.resource == item.resource && (!is_other_word || other.value == item.value)
        });
        if clashes {
            return Err(twice(&start, &item, "the list"));
        }
        items.push(item);
        if !cursor.take(":") {
            break;
        }
    }
    cursor.skip_spaces();
    if cursor.is_at_end() {
        return Ok(items);
    }
    let found = cursor.found();
    Err(cursor.error(format!("{found} can't be here; write : before the next resource")))
}

/// The items as [`parse_items`] reads them.
///
/// ```
/// let items = pbs_resources::parse_items("ncpus=32:mem=1024g:arch=linux")?;
/// assert_eq!(pbs_resources::format_items(&items), "ncpus=32:mem=1t:arch=linux");
/// # Ok::<(), pbs_resources::Error>(())
/// ```
pub fn format_items(items: &[Item]) -> String {
    let items: Vec<String> = items.iter().map(Item::to_string).collect();
    items.join(":")
}

impl fmt::Display for Rset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rset=")?;
        for (index, chunk) in self.chunks.iter().enumerate() {
            if index > 0 {
                f.write_str("+")?;
            }
            write!(f, "{chunk}")?;
        }
        for item in &self.job_wide {
            write!(f, ",{item}")?;
        }
        if self.place != Placement::default() {
            write!(f, ",place={}", self.place)?;
        }
        if !self.avoid.is_empty() {
            write!(f, ",avoid={}", self.avoid.join(":"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count != 1 {
            write!(f, "{}:", self.count)?;
        }
        f.write_str(&format_items(&self.items))
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.resource, self.value)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Amount(amount) => f.write_str(&format_size(*amount)),
            Self::Word(word) => f.write_str(word),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.arrangement)?;
        match self.sharing {
            Some(sharing) => write!(f, ":{sharing}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Arrangement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Free => "free",
            Self::Pack => "pack",
            Self::Scatter => "scatter",
        })
    }
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusive => "excl",
            Self::Shared => "shared",
        })
    }
}
