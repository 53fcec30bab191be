// SPDX-License-Identifier: GPL-2.0
//! Just enough SVG for the picture.

use std::fmt::Display;

use pbs_text::{append, append_line, escaped};

use crate::process_style::{ProcessStyle, PATTERNS};
use crate::sizes::{BOLD, MARGIN, MUTED, SMALL, TITLE, WIDTH};

/// Width of a letter of the sans-serif font, as a share of its size; a little
/// more than most letters take.
const LETTER_SHARE: f64 = 0.6;

/// Colours by name, light and dark, and the rules for classes of elements that use them.
const STYLE: &str = include_str!("style.css");

/// Line between the colours and the rules.
const RULES: &str = "/* Rules */\n";

/// Style of pictures.
///
/// Programs that do not know variables of CSS, as many that convert pictures for papers, read the
/// rules with the light colours in them, and skip those of `@supports`.
pub(crate) fn style() -> String {
    let (colours, rules) = STYLE.split_once(RULES).unwrap_or((STYLE, ""));
    let light = colours.split('}').next().unwrap_or_default();
    let mut fixed = rules.to_string();
    for (name, colour) in light.split([';', '{']).filter_map(|entry| entry.split_once(':')) {
        let (name, colour) = (name.trim(), colour.trim());
        fixed = fixed.replace(&format!("var({name})"), colour);
    }
    format!("{fixed}{colours}@supports (color: var(--ink)) {{\n{rules}}}\n")
}

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

/// Room for the title of a file.
const HEAD: f64 = 40.0;

/// Divides a text into lines that fit into `room`.
fn wrapped(text: &str, room: f64, size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(line, size) + text_width(word, size) + size <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

/// Style of an arrow that leads to a waiting task.
pub(crate) const EDGE: &str =
    "class=\"edge\" stroke=\"#16181d\" stroke-width=\"1\" stroke-opacity=\"0.55\"";
/// And one of those that set the end.
pub(crate) const CRITICAL: &str =
    "class=\"critical\" stroke=\"#b03a00\" stroke-width=\"2\" stroke-opacity=\"1\"";

/// Style of an arrow that leads from the sender of a message to its arrival.
pub(crate) const MESSAGE: &str =
    "class=\"message\" stroke=\"#0060a0\" stroke-width=\"1.5\" stroke-dasharray=\"5 3\"";

/// Half of the height of the mark of a deadline.
pub(crate) const DUE_HALF: f64 = 8.5;
/// Width of the mark of a deadline, which lies to the right of its time.
pub(crate) const DUE_WIDTH: f64 = 13.0;

/// Position of a text relative to its point.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture under construction; the height is known last.
pub(crate) struct Picture {
    /// Sentences on what the two axes are; they stand below the picture.
    axes: String,
    body: String,
}

impl Picture {
    pub(crate) fn new(axes: impl Into<String>) -> Self {
        Self { axes: axes.into(), body: String::new() }
    }

    pub(crate) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, style: impl Display) {
        append_line!(
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
        append_line!(
            self.body,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" \
             {style}><title>{}</title></rect>",
            escaped(title)
        );
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), style: impl Display) {
        append_line!(
            self.body,
            "<line x1=\"{:.2}\" y1=\"{:.2}\" x2=\"{:.2}\" y2=\"{:.2}\" {style}/>",
            from.0,
            from.1,
            to.0,
            to.1
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
        append_line!(
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
        append_line!(self.body, "<polygon points=\"{}\" {style}/>", points.join(" "));
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
        append_line!(
            self.body,
            "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{size}\" text-anchor=\"{anchor}\" \
             {style}>{}</text>",
            escaped(text)
        );
    }

    /// Draws a text in as many lines as it needs, the first on the base line `y`. Returns the base
    /// line of the next one.
    pub(crate) fn paragraph(&mut self, mut y: f64, size: f64, style: &str, text: &str) -> f64 {
        for line in wrapped(text, WIDTH - 2.0 * MARGIN, size) {
            self.text((MARGIN, y), size, Anchor::Start, style, &line);
            y += (size * 1.4).round();
        }
        y
    }

    /// A text that reads from bottom to top, with its middle at the point.
    pub(crate) fn upright(
        &mut self,
        (x, y): (f64, f64),
        size: f64,
        style: impl Display,
        text: &str,
    ) {
        append_line!(
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
        let room = text_width(&look.letter, SMALL) + 4.0;
        if width < room || height < SMALL + 2.0 {
            return;
        }
        if look.pattern.is_some() {
            let style = format!("fill=\"{}\" pointer-events=\"none\"", look.fill);
            self.rect(x + 0.5, y + 0.5, room, SMALL + 2.0, style);
        }
        let style = format!("fill=\"{}\" font-weight=\"bold\" pointer-events=\"none\"", look.ink);
        self.text((x + 2.0, y + SMALL - 1.0), SMALL, Anchor::Start, style, &look.letter);
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
        append_line!(self.body, "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"7.5\" {circle}/>");
        let style = format!("{text} font-weight=\"bold\" pointer-events=\"none\"");
        self.text((x, y + 4.5), SMALL, Anchor::Middle, style, letter);
    }

    /// Mark of a deadline, whose pole stands at `x`: a round sign with a tick if the deadline was
    /// kept, a flag with a cross if it was missed.
    pub(crate) fn deadline(&mut self, (x, y): (f64, f64), kept: bool) {
        let on = "class=\"on-due\" fill=\"none\" stroke=\"#ffffff\" stroke-width=\"2\"";
        let middle = (x + DUE_WIDTH / 2.0, y - 2.0);
        let at = |(dx, dy): (f64, f64)| (middle.0 + dx, middle.1 + dy);
        let half = DUE_WIDTH / 2.0;
        if kept {
            let style = "class=\"due-kept\" fill=\"#00704f\" stroke=\"#ffffff\"";
            let (x, y) = middle;
            append_line!(self.body, "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{half}\" {style}/>");
            self.polyline(&[at((-3.6, 0.2)), at((-1.0, 3.0)), at((3.6, -2.8))], on);
        } else {
            let style = "class=\"due-missed\" fill=\"#b03a00\" stroke=\"#ffffff\"";
            let corner = at((-half, 1.0 - half));
            self.rect(corner.0, corner.1, DUE_WIDTH, DUE_WIDTH - 2.0, style);
            for rise in [-3.0, 3.0] {
                self.line(at((-3.0, -rise)), at((3.0, rise)), on);
            }
        }
        let pole = "class=\"rule\" stroke=\"#000000\" stroke-width=\"1.5\"";
        self.line((x, y - DUE_HALF), (x, y + DUE_HALF), pole);
    }

    /// A line through points.
    pub(crate) fn polyline(&mut self, points: &[(f64, f64)], style: impl Display) {
        let mut text = String::new();
        for (x, y) in points {
            append!(text, "{x:.1},{y:.1} ");
        }
        append_line!(self.body, "<polyline points=\"{}\" {style}/>", text.trim_end());
    }

    /// A region that groups can be clipped to.
    pub(crate) fn clip(&mut self, id: &str, (x, y, width, height): (f64, f64, f64, f64)) {
        append_line!(
            self.body,
            "<clipPath id=\"{id}\"><rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" \
             height=\"{height:.2}\"/></clipPath>"
        );
    }

    /// Opens a group with these attributes; [`Picture::end`] closes it.
    pub(crate) fn begin(&mut self, attributes: impl Display) {
        append_line!(self.body, "<g {attributes}>");
    }

    pub(crate) fn end(&mut self) {
        self.body.push_str("</g>\n");
    }

    /// Draws the sentences about the axes below `bottom`. Returns the height of the whole.
    fn caption(&mut self, bottom: f64) -> f64 {
        let axes = std::mem::take(&mut self.axes);
        self.paragraph(bottom + SMALL, SMALL, MUTED, &axes)
    }

    /// The picture as a part of a page, which has a heading above it and whose style sheet colours
    /// it. `id` is unique in the page; nothing is drawn below `bottom` yet.
    pub(crate) fn inline(
        mut self,
        bottom: f64,
        definitions: &str,
        id: &str,
        title: &str,
        description: &str,
    ) -> String {
        let height = self.caption(bottom);
        let (title, description) = (escaped(title), escaped(description));
        let patterns = patterns(&self.body);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" role=\"img\" \
             viewBox=\"0 0 {WIDTH:.0} {height:.0}\" \
             aria-labelledby=\"{id}-title {id}-desc\">\n\
             <title id=\"{id}-title\">{title}</title>\n\
             <desc id=\"{id}-desc\">{description}</desc>\n\
             <defs>\n{patterns}{definitions}</defs>\n{}</svg>\n",
            self.body
        )
    }

    /// The picture as a file, with its title above the rest, that brings its style sheet;
    /// `definitions` go into `<defs>`. What knows no style sheets takes the colours of the
    /// attributes. Nothing is drawn below `bottom` yet.
    pub(crate) fn file(
        mut self,
        bottom: f64,
        definitions: &str,
        title: &str,
        description: &str,
    ) -> String {
        let shown = shortened(title, WIDTH - 2.0 * MARGIN, TITLE);
        self.text((MARGIN, -HEAD / 2.0 + 4.0), TITLE, Anchor::Start, BOLD, &shown);
        let height = HEAD + self.caption(bottom);
        let (title, description) = (escaped(title), escaped(description));
        let patterns = patterns(&self.body);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" role=\"img\" \
             width=\"{WIDTH:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 -{HEAD:.0} {WIDTH:.0} {height:.0}\" \
             font-family=\"DejaVu Sans, Verdana, Helvetica, Arial, sans-serif\">\n\
             <title>{title}</title>\n<desc>{description}</desc>\n<style>\n{}</style>\n\
             <defs>\n{patterns}{definitions}</defs>\n\
             <rect class=\"paper\" y=\"-{HEAD:.0}\" width=\"100%\" height=\"100%\" \
             fill=\"#ffffff\"/>\n{}</svg>\n",
            style(),
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
