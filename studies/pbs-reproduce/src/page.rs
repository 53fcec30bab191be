// SPDX-License-Identifier: GPL-2.0
//! The page: all claims with figures, commands and pictures, in one file.

use std::fs;
use std::path::Path;

use pbs_text::{append, append_line, escaped};

use crate::{summary, Document, Measured, Reproduction, TriedClaim, Verdict};

/// The page; pictures are in `folder`.
pub fn page(reproduction: &Reproduction, folder: &Path) -> String {
    let mut out = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n");
    out.push_str("<meta charset=\"utf-8\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.push_str("<title>Claims, reproduced or refuted</title>\n<style>\n");
    out.push_str(include_str!("page.css"));
    out.push_str("</style>\n</head>\n<body>\n<h1>Claims, reproduced or refuted</h1>\n");
    append!(
        out,
        "<p>{}.</p>\n<p class=\"muted\">Measured on {}.  Each verdict follows from the figures \
         that the command below it prints.</p>\n<nav><ul>\n",
        escaped(&summary(reproduction)),
        escaped(&reproduction.machine)
    );
    let rows = |document: Document| {
        let of = move |row: &&TriedClaim| row.document == document.short();
        reproduction.claims.iter().filter(of)
    };
    let there = Document::ALL.into_iter().filter(|&document| rows(document).next().is_some());
    for document in there.clone() {
        let refuted = |row: &&TriedClaim| matches!(row.verdict, Verdict::Refuted { .. });
        append_line!(
            out,
            "<li><a href=\"#{}\">{}</a> <span class=\"muted\">{} claims, {} refuted</span></li>",
            anchor(document),
            escaped(document.title()),
            rows(document).count(),
            rows(document).filter(refuted).count()
        );
    }
    out.push_str("</ul></nav>\n");
    for document in there {
        append_line!(
            out,
            "<section>\n<h2 id=\"{}\">{}</h2>",
            anchor(document),
            escaped(document.title())
        );
        rows(document).for_each(|row| article(row, folder, &mut out));
        out.push_str("</section>\n");
    }
    out + "</body>\n</html>\n"
}

fn anchor(document: Document) -> String {
    format!("{document:?}").to_lowercase()
}

fn article(row: &TriedClaim, folder: &Path, out: &mut String) {
    let (sign, class) = match row.verdict {
        Verdict::Reproduced => ("✓", "reproduced"),
        Verdict::Within { .. } => ("≈", "within"),
        Verdict::Better { .. } => ("↑", "better"),
        Verdict::ByConstruction => ("=", "construction"),
        Verdict::Undecided { .. } => ("?", "within"),
        Verdict::Refuted { .. } => ("✗", "refuted"),
        Verdict::Failed { .. } => ("!", "failed"),
        Verdict::CannotBeTried { .. } => ("–", "cannot"),
        Verdict::NotTried { .. } => ("–", "not"),
    };
    append_line!(
        out,
        "<article id=\"{id}\">\n<header><h3>{id}</h3> <span class=\"muted\">section {}</span> \
         <span class=\"verdict {class}\">{sign} {}</span></header>\n<p>{}</p>",
        escaped(&row.section),
        escaped(&row.verdict.to_string()),
        escaped(&row.says),
        id = escaped(&row.id),
    );
    figures(&row.figures, out);
    if let Some(note) = &row.note {
        append_line!(out, "<p class=\"muted\">{}</p>", escaped(note));
    }
    let picture = row.picture.as_ref();
    // A picture that was not kept is left out of the page.
    let picture = picture.and_then(|name| fs::read_to_string(folder.join(name)).ok());
    if picture.is_some() || row.drawn.is_some() {
        out.push_str("<figure>\n");
        if let Some(picture) = &picture {
            append_line!(
                out,
                "<img alt=\"{}\" src=\"data:image/svg+xml,{}\">",
                escaped(row.drawn.as_deref().unwrap_or(&row.says)),
                in_address(picture)
            );
        }
        if let Some(drawn) = &row.drawn {
            append_line!(out, "<figcaption>Published: {}</figcaption>", escaped(drawn));
        }
        out.push_str("</figure>\n");
    }
    if let Some(command) = &row.command {
        let took =
            row.took_ms.map_or_else(String::new, |ms| format!(", {:.1} s", ms as f64 / 1000.0));
        let filter = row
            .filter
            .as_ref()
            .map_or_else(String::new, |filter| format!("\n| jq '{}'", escaped(filter.trim())));
        append_line!(
            out,
            "<details><summary>How{took}</summary>\n<p>{}</p>\n<pre>{}{filter}</pre>\n\
             <pre>make reproduce R={}</pre></details>",
            escaped(&row.setup),
            escaped(command.trim()),
            escaped(&row.id)
        );
    }
    out.push_str("</article>\n");
}

fn figures(figures: &[Measured], out: &mut String) {
    if figures.is_empty() {
        return;
    }
    out.push_str(
        "<div class=\"wide\"><table>\n<tr><th>figure</th><th class=\"number\">published</th>\
         <th class=\"number\">measured</th><th>unit</th><th></th></tr>\n",
    );
    for figure in figures {
        let (measured, published) = figure.words();
        let claimed: Vec<_> = published.into_iter().chain(figure.bound.clone()).collect();
        let sign = match figure.holds {
            Some(true) => "✓",
            Some(false) => "✗",
            None => "",
        };
        append_line!(
            out,
            "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
             <td>{}</td><td>{sign}</td></tr>",
            escaped(&figure.name),
            escaped(&claimed.join(", ")),
            escaped(&measured),
            escaped(figure.unit.as_deref().unwrap_or_default()),
        );
    }
    out.push_str("</table></div>\n");
}

/// Encodes a text for an address: all but letters and digits by their bytes.
fn in_address(text: &str) -> String {
    let mut out = String::with_capacity(2 * text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'/' | b' ' | b'=' | b':' => {
                out.push(byte as char)
            }
            _ => {
                append!(out, "%{byte:02X}");
            }
        }
    }
    out
}
