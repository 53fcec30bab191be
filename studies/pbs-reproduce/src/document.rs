// SPDX-License-Identifier: GPL-2.0
//! `Documentation/reproduction.rst`.

use pbs_text::append_line;

use crate::mutate::turned_by;
use crate::verdict::short;
use crate::{summary, Claim, Claims, Document, Measured, Reproduction, TriedClaim};

const HEAD: &str = "\
.. SPDX-License-Identifier: GPL-2.0
.. Made by scripts/reproduce --doc from studies/pbs-reproduce/claims.toml and the measurements.

================================
Claims, reproduced or refuted
================================

The documents behind the project make claims.  Each claim stands here with the published and the
measured figures, and the conclusion.  ``studies/pbs-reproduce/claims.toml`` declares the claims:
the command that measures each, which the project has anyway, and the place of the figures in its
output.  The verdicts are computed from the figures.

::

    make reproduce                  # the quick set; leaves build/reproduce/claims.html
    make reproduce FULL=1           # all
    make reproduce R=L3.2.2         # those whose ids begin so
    scripts/reproduce --list L      # claims with their commands; nothing is run

**reproduced**
    All figures are as published, or within the claimed bounds.
**within**
    The figures differ from the published ones by so many percent, which the declaration allows.
**better**
    A cost is at least a quarter below what the document reports of its own implementation, or a
    yield as much above.  This shows that the cost is no obstacle here; it reproduces nothing.
**consistent by construction**
    The figures agree, and could not do otherwise: the trial was made from the published ones.
**undecided**
    The figures are as claimed, but so few jobs were drawn that chance is not excluded: the
    interval of 95 % of the difference (Newcombe) has both signs.
**refuted**
    A figure is not as claimed.  The first reason is given.
**can't be tried**
    The document does not give enough for a trial.

*Turned by* names a mutation of the figures that turns a positive verdict: a factor of 1.5, one
more, a comparison the other way round, nothing at all.  A claim may declare another one, with the
fault of the code that would have this effect.  ``scripts/reproduce --mutate`` applies the
mutations to a sample of the claims below, and ends with 5 if a verdict stays.  It runs no
command::

    scripts/reproduce --mutate              # 40 claims
    scripts/reproduce --mutate 10 --seed 7  # others

The letters of the ids stand for documents: L Leppert 2021, G C. Glaß 2024, K Keller, C Klein and
Pérez 2011, R Rados 2019, P the project's own.  The last section describes ``claims.json``.

.. contents::
   :local:
   :depth: 1

";

const TAIL: &str = "\
claims.json
===========

``build/reproduce/claims.json`` is an object of ``kind`` ``pbs.reproduction`` and ``version`` 1.
``machine`` describes the machine of the measurement, and ``commit`` is that of the last one.
``claims`` has for each claim

``id``, ``document``, ``section``, ``says``, ``setup``, ``command``, ``filter``
    The declared values.  ``command`` is ``null`` if nothing can be run, and ``filter`` if the
    whole output is used.
``verdict``
    ``is``: ``reproduced``, ``within``, ``better``, ``by_construction``, ``undecided``,
    ``refuted``, ``cannot_be_tried``, ``not_tried`` or ``failed``; ``share``, the difference within
    a tolerance; ``factor``, by which a cost is better; ``because``, the reason of the others.
``figures``
    ``name``, ``unit``, ``published``, ``bound`` (in words), ``measured``, ``holds`` (``null``
    without a claim), ``differs_by`` (a share of the published value).
    ``draws`` is the number of draws of which the figure is a share or a count, and ``interval``
    the interval of 95 % after Wilson, in the figure's unit.  Both are ``null`` for other figures.
``picture``, ``drawn``, ``note``
    The file of a picture in ``build/reproduce/out``, a description of the published picture, and a
    remark; or ``null``.
``took_ms``
    The duration of the command; claims with the same command share it.
``commit``
    The commit at which the claim was measured, with ``-dirty`` if files differed from it.  It is
    ``null`` for claims that were not tried, and for those from before commits were recorded.

The exit status of ``make reproduce`` is 1 if a command fails, not if a claim is refuted.
``scripts/reproduce --against Documentation/reproduction.json`` names what differs from this
document, and ends with 4 then: a verdict, a figure of a claim in virtual time, or a claim that is
not declared any more.  ``make test`` does that with the claims that are tried on the host in
virtual time.
";

/// The document: all claims, with what was measured.
pub fn document(claims: &Claims, results: &Reproduction) -> String {
    let mut out = String::from(HEAD);
    let at = results.commit.as_ref().map_or_else(String::new, |of| format!(", at commit {of}"));
    let measured = format!("{}; measured on {}{at}.", summary(results), results.machine);
    wrapped(&plain(&measured), "", "", &mut out);
    out.push('\n');
    for document in Document::ALL {
        let of = |claim: &&Claim| claim.document() == document;
        let mut there = claims.claims.iter().filter(of).peekable();
        if there.peek().is_none() {
            continue;
        }
        let title = document.title();
        let rule = "=".repeat(title.chars().count());
        append_line!(out, "{title}\n{rule}\n");
        for claim in there {
            let row = results.claims.iter().find(|row| row.id == claim.id);
            entry(claim, row, &mut out);
            if let Some(older) = row.and_then(|row| older(row, results)) {
                paragraph(&format!("*Measured earlier:* {older}."), &mut out);
            }
        }
    }
    out + TAIL
}

/// Writes the entry of a claim: statement, verdict, a list of the figures, note and set-up.
fn entry(claim: &Claim, row: Option<&TriedClaim>, out: &mut String) {
    let verdict = row.map_or_else(|| "not tried".into(), |row| row.verdict.to_string());
    append_line!(out, "``{}`` (section {})", claim.id, plain(&claim.section));
    paragraph(&plain(&claim.says), out);
    paragraph(&format!("**{}**", plain(&verdict)), out);
    let figures = row.map(|row| row.figures.as_slice()).unwrap_or_default();
    for measured in figures {
        wrapped(&figure(measured), "    - ", "      ", out);
    }
    if !figures.is_empty() {
        out.push('\n');
    }
    if let Some(mutation) = row.and_then(|row| turned_by(claim, row)) {
        paragraph(&format!("*Turned by:* {}.", plain(&mutation)), out);
    }
    if let Some(told) = claim.source.told() {
        paragraph(&format!("*Claimed figures:* {told}."), out);
    }
    if let Some(note) = &claim.note {
        paragraph(&format!("*Note:* {}", plain(note)), out);
    }
    if !claim.setup.is_empty() {
        paragraph(&format!("*Set-up:* {}", plain(&claim.setup)), out);
    }
}

/// The commit at which a claim was measured, in words, if it is not that of the last measurement.
fn older(row: &TriedClaim, results: &Reproduction) -> Option<String> {
    row.took_ms?;
    match &row.commit {
        commit if *commit == results.commit => None,
        Some(commit) => Some(format!("at commit {commit}")),
        None => Some("before commits were recorded".into()),
    }
}

/// Writes a paragraph of an entry, and an empty line.
fn paragraph(text: &str, out: &mut String) {
    wrapped(text, "    ", "    ", out);
    out.push('\n');
}

fn figure(figure: &Measured) -> String {
    let unit = figure.unit.as_ref().map_or_else(String::new, |unit| format!(" {unit}"));
    let (measured, published) = figure.words();
    let claimed: Vec<_> = published.into_iter().chain(figure.bound.clone()).collect();
    let claimed = if claimed.is_empty() {
        String::new()
    } else {
        format!(" (claimed: {})", claimed.join(", "))
    };
    let draws =
        figure.draws.zip(figure.interval).map_or_else(String::new, |(draws, [low, high])| {
            format!("; {} to {} at 95 %, of {draws} draws", short(low), short(high))
        });
    let words = format!("{}: {measured}{unit}{claimed}{draws}", figure.name);
    plain(&words)
}

/// Escapes the characters that reStructuredText would take for markup.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim().chars() {
        match c {
            '*' | '`' | '|' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '_' => out.push_str("\\_"),
            '\n' => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}

/// Writes a paragraph in lines of less than a hundred characters. The first line begins with
/// `first`, the others with `indent`.
fn wrapped(text: &str, first: &str, indent: &str, out: &mut String) {
    let mut length = 0;
    for word in text.split_whitespace() {
        let more = word.chars().count() + 1;
        if length == 0 || length + more > 96 {
            let begin = if length == 0 { first } else { indent };
            if length != 0 {
                out.push('\n');
            }
            out.push_str(begin);
            length = begin.len();
        } else {
            out.push(' ');
        }
        out.push_str(word);
        length += more;
    }
    out.push('\n');
}
