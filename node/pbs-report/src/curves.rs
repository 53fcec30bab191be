// SPDX-License-Identifier: GPL-2.0
//! Lines of several that are compared, in plots below each other.

use crate::axis::{ticks_between, Tick};
use crate::process_style::ProcessStyle;
use crate::sizes::{BOLD, HEADING, LEFT, RIGHT, TEXT, WIDTH};
use crate::svg::{text_width, Anchor, Picture};

const HEIGHT: f64 = 260.0;
/// In print, and for those who see no colours.
const DASHES: [&str; 4] = ["none", "9 4", "2 3", "9 4 2 4"];

/// A line of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Name of the compared item; the same name has the same place in each plot.
    pub name: String,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
}

/// Area between two lines: the spread of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Name of the band.
    pub name: String,
    /// From left to right, each with its lower and its upper end.
    pub points: Vec<(f64, (f64, f64))>,
}

/// A plot with what its axes are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plot {
    /// Stands above it.
    pub title: String,
    /// Quantity of the horizontal axis, with its unit.
    pub across: String,
    /// Quantity of the vertical axis, with its unit.
    pub up: String,
    /// To the right is ten times as much, again and again; what is not more than 0 is left
    /// out.
    pub is_logarithmic: bool,
    /// The axis goes from 0 to this; 0: as far as the lines do.
    pub up_to: f64,
    /// Lines of the plot.
    pub curves: Vec<Curve>,
    /// Areas below the lines. Each has the colour of the curve at its index; therefore the first
    /// band should be about the first curve.
    pub bands: Vec<Band>,
}

/// Plots below each other, as an SVG file. `description` tells those who cannot see it.
pub fn curves(title: &str, description: &str, plots: &[Plot]) -> String {
    let across = distinct(plots.iter().map(|plot| plot.across.as_str()));
    let up = distinct(plots.iter().map(|plot| plot.up.as_str()));
    let axes = format!("Left to right: {across}. Bottom to top: {up}.");
    let mut picture = Picture::new(axes);
    let mut y = 0.0;
    for (index, plot) in plots.iter().enumerate() {
        y = plot.draw(&mut picture, index, y);
    }
    picture.file(y, "", title, description)
}

/// Joins texts, each once.
fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut all: Vec<&str> = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all.join("; ")
}

impl Plot {
    /// The points that can be drawn, with the logarithms where those are.
    fn points<'a>(
        &'a self,
        points: impl Iterator<Item = (f64, f64)> + 'a,
    ) -> impl Iterator<Item = (f64, f64)> + 'a {
        let points = points.filter_map(|(x, y)| {
            if self.is_logarithmic {
                (x > 0.0).then(|| (x.log10(), y))
            } else {
                Some((x, y))
            }
        });
        points.filter(|(x, y)| x.is_finite() && y.is_finite())
    }

    fn of_curve<'a>(&'a self, curve: &'a Curve) -> impl Iterator<Item = (f64, f64)> + 'a {
        self.points(curve.points.iter().copied())
    }

    /// Along its lower line and back along the upper one.
    fn around<'a>(&'a self, band: &'a Band) -> impl Iterator<Item = (f64, f64)> + 'a {
        let lower = band.points.iter().map(|&(x, (low, _))| (x, low));
        let upper = band.points.iter().rev().map(|&(x, (_, high))| (x, high));
        self.points(lower.chain(upper))
    }

    /// From `y` down; the answer is where it ends.
    fn draw(&self, picture: &mut Picture, index: usize, y: f64) -> f64 {
        let at = (LEFT, y + HEADING);
        picture.text(at, HEADING, Anchor::Start, BOLD, &self.title);
        let top = self.key(picture, y + HEADING + 24.0) + 12.0;
        let (bottom, right) = (top + HEIGHT, WIDTH - RIGHT);
        let all = || {
            let of_curves = self.curves.iter().flat_map(|curve| self.of_curve(curve));
            let of_bands = self.bands.iter().flat_map(|band| self.around(band));
            of_curves.chain(of_bands)
        };
        let least = all().map(|point| point.0).fold(f64::INFINITY, f64::min);
        let most = all().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
        let (least, most) =
            if least <= most { (least, most.max(least + 1e-9)) } else { (0.0, 1.0) };
        let high = if self.up_to > 0.0 {
            self.up_to
        } else {
            all().map(|point| point.1).fold(1e-9, f64::max) * 1.05
        };
        let x_of = |x: f64| LEFT + (x - least) / (most - least) * (right - LEFT);
        let y_of = |y: f64| bottom - y / high * HEIGHT;
        picture.rect(LEFT, top, right - LEFT, HEIGHT, "class=\"plot\"");
        for tick in ticks_between(0.0, high, 6) {
            let y = y_of(tick.at);
            picture.line((LEFT, y), (right, y), "class=\"grid\"");
            let at = (LEFT - 8.0, y + 4.0);
            picture.text(at, TEXT, Anchor::End, "class=\"muted\"", &tick.label);
        }
        let at = (24.0, (top + bottom) / 2.0);
        picture.upright(at, TEXT, "class=\"muted\"", &self.up);
        for tick in self.ticks(least, most) {
            let x = x_of(tick.at);
            picture.line((x, top), (x, bottom + 5.0), "class=\"grid\"");
            let at = (x, bottom + 19.0);
            picture.text(at, TEXT, Anchor::Middle, "class=\"muted\"", &tick.label);
        }
        let at = ((LEFT + right) / 2.0, bottom + 38.0);
        picture.text(at, TEXT, Anchor::Middle, "class=\"muted\"", &self.across);
        let clip = format!("plot-{index}-clip");
        picture.clip(&clip, (LEFT, top - 2.0, right - LEFT, HEIGHT + 4.0));
        picture.begin(format!("clip-path=\"url(#{clip})\""));
        // The first about a line is the narrowest, and lies on the others.
        for (place, band) in self.bands.iter().enumerate().rev() {
            let points = self.around(band).map(|(x, y)| (x_of(x), y_of(y)));
            picture.polygon(&points.collect::<Vec<_>>(), shade(place));
        }
        for (place, curve) in self.curves.iter().enumerate() {
            let points = self.of_curve(curve).map(|(x, y)| (x_of(x), y_of(y)));
            let points: Vec<_> = points.collect();
            picture.polyline(&points, style(place));
        }
        picture.end();
        bottom + 52.0
    }

    fn ticks(&self, least: f64, most: f64) -> Vec<Tick> {
        let all = ticks_between(least, most, 10);
        if !self.is_logarithmic {
            return all;
        }
        // Powers of ten; parts of one if there is none.
        let powers = (least.ceil() as i32..=most.floor() as i32).map(|power| Tick {
            at: f64::from(power),
            label: match power {
                0..=5 => pbs_text::grouped(10i64.pow(power.unsigned_abs())),
                _ => format!("1e{power}"),
            },
        });
        let powers: Vec<_> = powers.collect();
        if powers.len() > 1 {
            powers
        } else {
            all.into_iter()
                .map(|tick| Tick { label: format!("{:.2}", 10f64.powf(tick.at)), ..tick })
                .collect()
        }
    }

    /// Draws the key of curves and bands.
    fn key(&self, picture: &mut Picture, mut y: f64) -> f64 {
        let mut x = LEFT;
        let curves = self.curves.iter().enumerate();
        let curves = curves.map(|(place, curve)| (place, &curve.name, true));
        let bands = self.bands.iter().enumerate();
        let bands = bands.map(|(place, band)| (place, &band.name, false));
        for (place, name, is_curve) in curves.chain(bands) {
            let width = 46.0 + text_width(name, TEXT) + 16.0;
            if x + width > WIDTH - 4.0 && x > LEFT {
                x = LEFT;
                y += 22.0;
            }
            if is_curve {
                picture.line((x, y - 4.0), (x + 38.0, y - 4.0), style(place))
            } else {
                picture.rect(x, y - 11.0, 38.0, 14.0, shade(place))
            }
            picture.text((x + 46.0, y), TEXT, Anchor::Start, "", name);
            x += width;
        }
        y
    }
}

/// Returns the style of a band: transparent, to keep lines and other bands visible below it.
fn shade(place: usize) -> String {
    format!("fill=\"{}\" fill-opacity=\"0.25\"", ProcessStyle::of(place).fill)
}

fn style(place: usize) -> String {
    format!(
        "fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{}\"",
        ProcessStyle::of(place).fill,
        DASHES[place % DASHES.len()]
    )
}
