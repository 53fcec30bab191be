// SPDX-License-Identifier: GPL-2.0
//! Just enough SVG for the picture.

use std::fmt::{Display, Write};

/// Width of a letter of the sans-serif font, as a share of its size; a little
/// more than most letters take.
const LETTER_SHARE: f64 = 0.6;

/// How wide `text` is at most.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * LETTER_SHARE
}

/// Where a text stands from its point.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture under construction; the height is known last.
pub(crate) struct Picture {
    width: f64,
    body: String,
}

impl Picture {
    pub(crate) fn new(width: f64) -> Self {
        Self {
            width,
            body: String::new(),
        }
    }

    pub(crate) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, style: impl Display) {
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" {style}/>"
        );
    }

    /// A rectangle with a text that shows when the pointer rests on it.
    pub(crate) fn titled_rect(
        &mut self,
        (x, y, width, height): (f64, f64, f64, f64),
        style: impl Display,
        title: &str,
    ) {
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" \
             {style}><title>{}</title></rect>",
            escaped(title)
        );
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), style: impl Display) {
        let _ = writeln!(
            self.body,
            "<line x1=\"{:.2}\" y1=\"{:.2}\" x2=\"{:.2}\" y2=\"{:.2}\" {style}/>",
            from.0, from.1, to.0, to.1
        );
    }

    pub(crate) fn polygon(&mut self, points: &[(f64, f64)], style: impl Display) {
        let points: Vec<_> = points
            .iter()
            .map(|(x, y)| format!("{x:.2},{y:.2}"))
            .collect();
        let _ = writeln!(
            self.body,
            "<polygon points=\"{}\" {style}/>",
            points.join(" ")
        );
    }

    pub(crate) fn text(
        &mut self,
        (x, y): (f64, f64),
        size: f64,
        anchor: Anchor,
        style: impl Display,
        text: &str,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{size}\" text-anchor=\"{anchor}\" \
             {style}>{}</text>",
            escaped(text)
        );
    }

    /// A text that reads from bottom to top, with its middle at the point.
    pub(crate) fn upright(
        &mut self,
        (x, y): (f64, f64),
        size: f64,
        style: impl Display,
        text: &str,
    ) {
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{size}\" text-anchor=\"middle\" \
             transform=\"rotate(-90 {x:.2} {y:.2})\" {style}>{}</text>",
            escaped(text)
        );
    }

    /// The whole file; `definitions` go into `<defs>`.
    pub(crate) fn finish(self, height: f64, definitions: &str) -> String {
        let width = self.width;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" \
             height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             font-family=\"DejaVu Sans, Verdana, Helvetica, Arial, sans-serif\">\n\
             <defs>\n{definitions}</defs>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
            self.body
        )
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            // No XML can hold them.
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
