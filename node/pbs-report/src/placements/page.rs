// SPDX-License-Identifier: GPL-2.0
//! The schedules as a page.

use pbs_text::{append_line, escaped, Table};

use super::picture::inline;
use super::Placements;
use crate::page::{PAGE_STYLE, SCROLL};
use crate::svg::style;

/// A page of HTML that needs nothing else: figures in short, the picture, and tables below
/// their headings.
pub fn placements_page(
    placements: &Placements,
    figures: &[(String, String)],
    note: &str,
    tables: &[(&str, Table)],
) -> String {
    let title = escaped(&placements.title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{}{PAGE_STYLE}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n<p class=\"about\">{}</p>\n<ul class=\"figures\">\n",
        style(),
        escaped(note)
    );
    for (what, figure) in figures {
        let (what, figure) = (escaped(what), escaped(figure));
        append_line!(out, "<li><b>{figure}</b> {what}</li>");
    }
    append_line!(out, "</ul>\n{SCROLL}\n{}</div>", inline(placements));
    for (heading, table) in tables {
        let (heading, table) = (escaped(heading), table.html());
        append_line!(out, "<h2>{heading}</h2>\n{SCROLL}\n{table}</div>");
    }
    out + "</body>\n</html>\n"
}
