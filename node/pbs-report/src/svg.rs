// SPDX-License-Identifier: GPL-2.0
//! Just enough SVG for the picture.

use std::fmt::{Display, Write};

use pbs_text::escaped;

use crate::process_style::{ProcessStyle, PATTERNS};

/// Width of a letter of the sans-serif font, as a share of its size; a little
/// more than most letters take.
const LETTER_SHARE: f64 = 0.6;

/// Colours of pictures by class, light and dark.
pub(crate) const STYLE: &str = include_str!("style.css");

/// Returns the greatest width that `text` may have.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * LETTER_SHARE
}

/// Returns as much of a name as there is room for: its beginning and its end, since several names
/// often differ at the end.
pub(crate) fn shortened(name: &str, room: f64, size: f64) -> String {
    let room = (room / text_width("m", size)) as usize;
    let letters: Vec<_> = name.chars().collect();
    if letters.len() <= room {
        return name.into();
    }
    let end = (room / 3).min(5);
    let begin = room.saturating_sub(end + 1);
    let (begin, end) = (&letters[..begin], &letters[letters.len() - end..]);
    format!("{}…{}", String::from_iter(begin), String::from_iter(end))
}

/// Style of an arrow that leads to a waiting task.
pub(crate) const EDGE: &str =
    "class=\"edge\" stroke=\"#16181d\" stroke-width=\"1\" stroke-opacity=\"0.55\"";
/// And one of those that set the end.
pub(crate) const CRITICAL: &str =
    "class=\"critical\" stroke=\"#b03a00\" stroke-width=\"2\" stroke-opacity=\"1\"";

/// Position of a text relative to its point.
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
        Self { width, body: String::new() }
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

    /// An arrow that is bent by so much in its middle, with a text that shows when
    /// the pointer rests on it.
    pub(crate) fn arrow(
        &mut self,
        from: (f64, f64),
        to: (f64, f64),
        bend: f64,
        style: &str,
        title: &str,
    ) {
        let control = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0 + 2.0 * bend);
        let (dx, dy) = (to.0 - control.0, to.1 - control.1);
        let length = dx.hypot(dy).max(0.01);
        // Along the arrow, as long as its head.
        let (dx, dy) = (dx / length * 6.0, dy / length * 6.0);
        let _ = writeln!(
            self.body,
            "<path d=\"M {:.2} {:.2} Q {:.2} {:.2} {:.2} {:.2} M {:.2} {:.2} L {:.2} {:.2} L \
             {:.2} {:.2}\" {style} fill=\"none\"><title>{}</title></path>",
            from.0,
            from.1,
            control.0,
            control.1,
            to.0,
            to.1,
            to.0 - dx - dy / 2.0,
            to.1 - dy + dx / 2.0,
            to.0,
            to.1,
            to.0 - dx + dy / 2.0,
            to.1 - dy - dx / 2.0,
            escaped(title)
        );
    }

    pub(crate) fn polygon(&mut self, points: &[(f64, f64)], style: impl Display) {
        let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.2},{y:.2}")).collect();
        let _ = writeln!(self.body, "<polygon points=\"{}\" {style}/>", points.join(" "));
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

    /// A box of a process, which shows its text when the pointer rests on it.
    pub(crate) fn process_box(
        &mut self,
        place: (f64, f64, f64, f64),
        look: &ProcessStyle,
        style: impl Display,
        title: &str,
    ) {
        self.titled_rect(place, format!("fill=\"{}\" {style}", look.fill), title);
        if let Some(pattern) = look.pattern {
            let (x, y, width, height) = place;
            let over = format!("fill=\"url(#{pattern})\" pointer-events=\"none\"");
            self.rect(x, y, width, height, over);
        }
    }

    /// The letter of a process in the upper left corner of a box of it, if there is
    /// room.
    pub(crate) fn tag(&mut self, (x, y, width, height): (f64, f64, f64, f64), look: &ProcessStyle) {
        const SIZE: f64 = 10.0;
        let room = text_width(&look.letter, SIZE) + 4.0;
        if width < room || height < SIZE + 2.0 {
            return;
        }
        if look.pattern.is_some() {
            let style = format!("fill=\"{}\" pointer-events=\"none\"", look.fill);
            self.rect(x + 0.5, y + 0.5, room, SIZE + 2.0, style);
        }
        let style = format!("fill=\"{}\" font-weight=\"bold\" pointer-events=\"none\"", look.ink);
        self.text((x + 2.0, y + SIZE), SIZE, Anchor::Start, style, &look.letter);
    }

    /// A line of text in the middle of a box, which a pattern does not go through.
    pub(crate) fn in_box(
        &mut self,
        (x, y): (f64, f64),
        size: f64,
        look: &ProcessStyle,
        text: &str,
    ) {
        if look.pattern.is_some() {
            let width = text_width(text, size) + 4.0;
            let style = format!("fill=\"{}\" pointer-events=\"none\"", look.fill);
            self.rect(x - width / 2.0, y - size * 0.95, width, size * 1.25, style);
        }
        let style = format!("fill=\"{}\" pointer-events=\"none\"", look.ink);
        self.text((x, y), size, Anchor::Middle, style, text);
    }

    /// Draws the style of a process, for the key at `(x, y)`.
    pub(crate) fn swatch(&mut self, (x, y): (f64, f64), look: &ProcessStyle) {
        self.rect(x, y, 14.0, 14.0, format!("fill=\"{}\"", look.fill));
        if let Some(pattern) = look.pattern {
            self.rect(x, y, 14.0, 14.0, format!("fill=\"url(#{pattern})\""));
        }
    }

    /// A text that lines behind do not go through.
    pub(crate) fn label(
        &mut self,
        (x, y): (f64, f64),
        size: f64,
        anchor: Anchor,
        style: impl Display,
        text: &str,
    ) {
        let width = text_width(text, size) * 1.05;
        let left = match anchor {
            Anchor::Start => x,
            Anchor::Middle => x - width / 2.0,
            Anchor::End => x - width,
        };
        let under = "class=\"under\" fill=\"#ffffff\" fill-opacity=\"0.85\"";
        self.rect(left - 1.0, y - size * 0.85, width + 2.0, size * 1.1, under);
        self.text((x, y), size, anchor, style, text);
    }

    /// A circle with a letter in it: filled, or hollow.
    pub(crate) fn signal(&mut self, (x, y): (f64, f64), letter: &str, filled: bool) {
        let (circle, text) = if filled {
            (
                "class=\"mark\" fill=\"#000000\" stroke=\"#ffffff\"",
                "class=\"on-mark\" fill=\"#ffffff\"",
            )
        } else {
            (
                "class=\"hollow\" fill=\"#ffffff\" stroke=\"#000000\"",
                "class=\"on-hollow\" fill=\"#000000\"",
            )
        };
        let _ = writeln!(self.body, "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"6.5\" {circle}/>");
        let style = format!("{text} font-weight=\"bold\" pointer-events=\"none\"");
        self.text((x, y + 4.0), 11.0, Anchor::Middle, style, letter);
    }

    /// A line through points.
    pub(crate) fn polyline(&mut self, points: &[(f64, f64)], style: impl Display) {
        let mut text = String::new();
        for (x, y) in points {
            let _ = write!(text, "{x:.1},{y:.1} ");
        }
        let _ = writeln!(self.body, "<polyline points=\"{}\" {style}/>", text.trim_end());
    }

    /// A region that groups can be clipped to.
    pub(crate) fn clip(&mut self, id: &str, (x, y, width, height): (f64, f64, f64, f64)) {
        let _ = writeln!(
            self.body,
            "<clipPath id=\"{id}\"><rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" \
             height=\"{height:.2}\"/></clipPath>"
        );
    }

    /// Opens a group with these attributes; [`Picture::end`] closes it.
    pub(crate) fn begin(&mut self, attributes: impl Display) {
        let _ = writeln!(self.body, "<g {attributes}>");
    }

    pub(crate) fn end(&mut self) {
        self.body.push_str("</g>\n");
    }

    /// The picture as a part of a page, whose style sheet colours it. `id` is
    /// unique in the page.
    pub(crate) fn inline(
        self,
        height: f64,
        definitions: &str,
        id: &str,
        title: &str,
        description: &str,
    ) -> String {
        let (width, title, description) = (self.width, escaped(title), escaped(description));
        let patterns = patterns(&self.body);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" role=\"img\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" \
             aria-labelledby=\"{id}-title {id}-desc\">\n\
             <title id=\"{id}-title\">{title}</title>\n\
             <desc id=\"{id}-desc\">{description}</desc>\n\
             <defs>\n{patterns}{definitions}</defs>\n{}</svg>\n",
            self.body
        )
    }

    /// The picture as a file that brings its style sheet; `definitions` go into
    /// `<defs>`. What knows no style sheets takes the colours of the attributes.
    pub(crate) fn file(
        self,
        height: f64,
        definitions: &str,
        title: &str,
        description: &str,
    ) -> String {
        let (width, title, description) = (self.width, escaped(title), escaped(description));
        let patterns = patterns(&self.body);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" role=\"img\" \
             width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             font-family=\"DejaVu Sans, Verdana, Helvetica, Arial, sans-serif\">\n\
             <title>{title}</title>\n<desc>{description}</desc>\n<style>\n{STYLE}</style>\n\
             <defs>\n{patterns}{definitions}</defs>\n\
             <rect class=\"paper\" width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
            self.body
        )
    }
}

/// The patterns, if anything has one.
fn patterns(body: &str) -> &'static str {
    let has_one = ["stripes", "dots", "grid"].map(|name| body.contains(&format!("url(#{name})")));
    if has_one.contains(&true) {
        PATTERNS
    } else {
        ""
    }
}
