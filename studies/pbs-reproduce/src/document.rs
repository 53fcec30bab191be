// SPDX-License-Identifier: GPL-2.0
//! `Documentation/reproduction.rst`.

use std::fmt::Write;

use crate::{summary, Claim, Claims, Document, Measured, Reproduction, TriedClaim};

const HEAD: &str = "\
.. SPDX-License-Identifier: GPL-2.0
.. Made by scripts/reproduce --doc of studies/pbs-reproduce/claims.toml and what was measured.

================================
Claims, reproduced or refuted
================================

The documents behind the project make claims.  Here each of them stands with what was
published, what was measured, and what follows.  ``studies/pbs-reproduce/claims.toml`` declares the
claims: of each the command that measures it, one that the project has anyway, and where in
its output the figures are.  The verdicts are computed from the figures.

::

    make reproduce                  # the quick set; leaves build/reproduce/claims.html
    make reproduce FULL=1           # all
    make reproduce R=L3.2.2         # those whose ids begin so
    scripts/reproduce --list L      # claims with their commands; nothing is run

**reproduced**: all figures are as published, or within the bounds that are claimed.
**within**: so many percent beside what was published, which the declaration allows.
**refuted**: a figure is not as claimed; the first reason is given.  **can't be tried**: the
document does not give enough for it.  What the letters stand for: L Leppert 2021, G C. Glaß
2024, K Keller, C Klein and Pérez 2011, R Rados 2019, P the project's own.  How
``claims.json`` reads is told at the end.

.. contents::
   :local:
   :depth: 1

";

const TAIL: &str = "\
claims.json
===========

``build/reproduce/claims.json`` is an object of ``kind`` ``pbs.reproduction`` and ``version``
1.  ``machine`` says on what it was measured; ``claims`` has for each claim

``id``, ``document``, ``section``, ``says``, ``setup``, ``command``, ``filter``
    As declared; ``command`` is ``null`` where nothing can be run, ``filter`` where all of its
    output is looked at.
``verdict``
    ``is``: ``reproduced``, ``within``, ``refuted``, ``cannot_be_tried``, ``not_tried`` or
    ``failed``; ``share`` of what is within a tolerance, ``because`` of the others.
``figures``
    ``name``, ``unit``, ``published``, ``bound`` (in words), ``measured``, ``holds`` (``null``
    where nothing is claimed), ``differs_by`` (a share of what was published).
``picture``, ``drawn``, ``note``
    The file of a picture in ``build/reproduce/out``, what the published one shows, and a
    remark; or ``null``.
``took_ms``
    How long the command took; claims of one command share it.

The exit status of ``make reproduce`` is 1 if a command fails, not if a claim is refuted.
``scripts/reproduce --against Documentation/reproduction.json`` ends with 4 if a verdict is
not the one of this document, and says which; ``make test`` does that with the claims that
are tried on the host in virtual time.
";

/// The document: all claims, with what was measured.
pub fn document(claims: &Claims, results: &Reproduction) -> String {
    let mut out = String::from(HEAD);
    let measured = format!("{}; measured on {}.", summary(results), results.machine);
    wrapped(&plain(&measured), "", &mut out);
    out.push('\n');
    for document in Document::ALL {
        let of = |claim: &&Claim| claim.document() == document;
        let mut there = claims.claims.iter().filter(of).peekable();
        if there.peek().is_none() {
            continue;
        }
        let title = document.title();
        let rule = "=".repeat(title.chars().count());
        let _ = writeln!(out, "{title}\n{rule}\n");
        for claim in there {
            let row = results.claims.iter().find(|row| row.id == claim.id);
            entry(claim, row, &mut out);
        }
    }
    out + TAIL
}

fn entry(claim: &Claim, row: Option<&TriedClaim>, out: &mut String) {
    let verdict = row.map_or_else(|| "not tried".into(), |row| row.verdict.to_string());
    let mut text = format!("{} **{}**.", plain(&claim.says), plain(&verdict));
    let figures = row.map(|row| row.figures.as_slice()).unwrap_or_default();
    if !figures.is_empty() {
        let words: Vec<_> = figures.iter().map(figure).collect();
        let _ = write!(text, "  Measured: {}.", words.join("; "));
    }
    if let Some(note) = &claim.note {
        let _ = write!(text, "  {}", plain(note));
    }
    if !claim.setup.is_empty() {
        let _ = write!(text, "  *Set-up:* {}", plain(&claim.setup));
    }
    let _ = writeln!(out, "``{}`` (section {})", claim.id, plain(&claim.section));
    wrapped(&text, "    ", out);
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
    let words = format!("{} {measured}{unit}{claimed}", figure.name);
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

/// A paragraph in lines of less than a hundred characters, each of which begins so.
fn wrapped(text: &str, indent: &str, out: &mut String) {
    let mut length = 0;
    for word in text.split_whitespace() {
        let more = word.chars().count() + 1;
        if length == 0 || length + more > 92 {
            if length != 0 {
                out.push('\n');
            }
            out.push_str(indent);
            length = indent.len();
        } else {
            out.push(' ');
        }
        out.push_str(word);
        length += more;
    }
    out.push('\n');
}
