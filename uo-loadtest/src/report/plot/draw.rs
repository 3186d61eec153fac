//! Draws a plot.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::fmt::Write as _;

use super::scale::moments;
use super::{Form, Layer, Mark, Plot, Shape, escape, number};

/// The picture's width, in its own units.
pub const WIDTH: f64 = 960.0;
/// Where the time axis begins: left of it are the values.
pub const LEFT: f64 = 56.0;
/// Where it ends: right of it are the layers' names.
pub const RIGHT: f64 = 828.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 142.0;
const HEIGHT: f64 = 164.0;
/// Between two names.
const NAME_HEIGHT: f64 = 14.0;
/// Points of a line that are drawn; of more, the largest of each stretch.
const POINTS_MAX: usize = 772;

/// Where a moment is.
pub fn x(at_s: f64, end_s: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * (at_s / end_s.max(1e-9)).clamp(0.0, 1.0)
}

/// The plot, from second 0 to `end_s`, with a line for each mark.
pub fn svg(plot: &Plot, marks: &[Mark], end_s: f64) -> String {
    let mut picture = Picture {
        plot,
        end_s,
        svg: String::new(),
        names: Vec::new(),
    };
    picture.frame();
    picture.marks(marks);
    picture.layers();
    picture.limits();
    picture.names();
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
        escape(&format!("{}: {}", plot.title, plot.summary)),
        picture.svg
    )
}

struct Picture<'a> {
    plot: &'a Plot,
    end_s: f64,
    svg: String,
    /// Names at the right: how high, which colour, what.
    names: Vec<(f64, String, String)>,
}

impl Picture<'_> {
    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.svg.write_fmt(element);
        self.svg.push('\n');
    }

    fn x(&self, at_s: f64) -> f64 {
        x(at_s, self.end_s)
    }

    fn y(&self, value: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * self.plot.scale.place(value)
    }

    /// Grid, ticks and units.
    fn frame(&mut self) {
        for value in self.plot.scale.ticks() {
            let (y, text) = (self.y(value), number(value));
            self.add(format_args!(
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
                LEFT - 6.0,
                y + 4.0
            ));
        }
        for at_s in moments(self.end_s) {
            let x = self.x(at_s);
            self.add(format_args!(
                "<path class=\"grid\" d=\"M{x:.1} {BOTTOM}v4\"/><text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                BOTTOM + 16.0,
                moment(at_s)
            ));
        }
    }

    fn marks(&mut self, marks: &[Mark]) {
        for (index, mark) in marks.iter().enumerate() {
            let x = self.x(mark.at_s);
            self.add(format_args!(
                "<g class=\"mark\"><title>{} at {:.0} s: {}</title><path d=\"M{x:.1} {TOP}V{BOTTOM}\"/></g>",
                index + 1,
                mark.at_s,
                escape(&mark.label)
            ));
        }
    }

    fn limits(&mut self) {
        for (value, what) in &self.plot.limits {
            let y = self.y(*value);
            self.add(format_args!(
                "<path class=\"limit\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>"
            ));
            self.names.push((y, "limit-name".into(), what.clone()));
        }
    }

    fn layers(&mut self) {
        let plot = self.plot;
        let mut below: Vec<f64> = Vec::new();
        for layer in &plot.layers {
            match layer.form {
                Form::Area => below = self.area(layer, below),
                Form::Dots(shape) => self.dots(layer, shape),
                Form::Strong => self.line(layer, "strong"),
                Form::Thin => self.line(layer, "thin"),
                Form::Dashed => self.line(layer, "dashed"),
            }
        }
    }

    fn line(&mut self, layer: &Layer, class: &str) {
        let points = thinned(&layer.points);
        let mut path = String::new();
        let mut is_on = false;
        for &(at_s, value) in &points {
            if let Some(value) = value {
                let step = if is_on { 'L' } else { 'M' };
                let _ = write!(path, "{step}{:.1} {:.1}", self.x(at_s), self.y(value));
                if !is_on {
                    // A value between two holes is a dot.
                    path.push_str("h0.1");
                }
            }
            is_on = value.is_some();
        }
        let Some(last) = points.iter().rev().find_map(|(_, value)| *value) else {
            return;
        };
        self.add(format_args!(
            "<path class=\"line {class} c{}\" d=\"{path}\"/>",
            layer.colour
        ));
        self.name(layer, self.y(last));
    }

    /// An area above those below it; gives what the next one is above of.
    fn area(&mut self, layer: &Layer, below: Vec<f64>) -> Vec<f64> {
        let points = thinned(&layer.points);
        let under = |at: usize| below.get(at).copied().unwrap_or(0.0);
        let tops: Vec<f64> = points
            .iter()
            .enumerate()
            .map(|(at, (_, value))| under(at) + value.unwrap_or(0.0))
            .collect();
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return below;
        };
        let mut path = format!("M{:.1} {:.1}", self.x(first.0), self.y(under(0)));
        for (at, (at_s, _)) in points.iter().enumerate() {
            let _ = write!(path, "L{:.1} {:.1}", self.x(*at_s), self.y(tops[at]));
        }
        for (at, (at_s, _)) in points.iter().enumerate().rev() {
            let _ = write!(path, "L{:.1} {:.1}", self.x(*at_s), self.y(under(at)));
        }
        self.add(format_args!(
            "<path class=\"area c{}\" d=\"{path}Z\"><title>{}</title></path>",
            layer.colour,
            escape(&layer.name)
        ));
        let at = points.len() - 1;
        // The name is where the area is last seen.
        if last.1.is_some_and(|value| value > 0.0) {
            self.name(layer, self.y((under(at) + tops[at]) / 2.0));
        } else {
            self.name(layer, self.y(under(at)));
        }
        tops
    }

    fn dots(&mut self, layer: &Layer, shape: Shape) {
        let points: Vec<(f64, f64)> = layer
            .points
            .iter()
            .filter_map(|(at_s, value)| Some((*at_s, (*value)?)))
            .collect();
        let Some(&(_, last)) = points.last() else {
            return;
        };
        let mut path = String::new();
        for &(at_s, value) in &points {
            path.push_str(&outline(shape, self.x(at_s), self.y(value)));
        }
        self.add(format_args!(
            "<path class=\"dots c{}\" d=\"{path}\"/>",
            layer.colour
        ));
        self.name(layer, self.y(last));
    }

    fn name(&mut self, layer: &Layer, y: f64) {
        self.names
            .push((y, format!("c{}", layer.colour), name(layer)));
    }

    /// Writes the names at the right, each as near to its layer's end as the others let it.
    fn names(&mut self) {
        let mut names = std::mem::take(&mut self.names);
        names.sort_by(|one, other| one.0.total_cmp(&other.0));
        for at in 1..names.len() {
            names[at].0 = names[at].0.max(names[at - 1].0 + NAME_HEIGHT);
        }
        // What was pushed out below moves the others up.
        let mut lowest = BOTTOM - 4.0;
        for at in (0..names.len()).rev() {
            names[at].0 = names[at].0.min(lowest);
            lowest = names[at].0 - NAME_HEIGHT;
        }
        for (y, class, text) in names {
            self.add(format_args!(
                "<text class=\"name {class}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                RIGHT + 8.0,
                y + 4.0,
                escape(&text)
            ));
        }
    }
}

/// A layer's name, behind the shape of its dots.
fn name(layer: &Layer) -> String {
    let sign = match layer.form {
        Form::Dots(Shape::Circle) => "● ",
        Form::Dots(Shape::Square) => "■ ",
        Form::Dots(Shape::Triangle) => "▲ ",
        Form::Dots(Shape::Diamond) => "◆ ",
        Form::Dots(Shape::Cross) => "× ",
        Form::Dots(Shape::Plus) => "+ ",
        Form::Strong | Form::Thin | Form::Dashed | Form::Area => "",
    };
    format!("{sign}{}", layer.name)
}

fn outline(shape: Shape, x: f64, y: f64) -> String {
    match shape {
        Shape::Circle => format!("M{:.1} {y:.1}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0", x - 3.0),
        Shape::Square => format!("M{:.1} {:.1}h5.4v5.4h-5.4z", x - 2.7, y - 2.7),
        Shape::Triangle => format!("M{x:.1} {:.1}l3.6 6.2h-7.2z", y - 3.8),
        Shape::Diamond => format!("M{x:.1} {:.1}l3.8 3.8l-3.8 3.8l-3.8 -3.8z", y - 3.8),
        Shape::Cross => format!("M{:.1} {:.1}l5.6 5.6m0 -5.6l-5.6 5.6", x - 2.8, y - 2.8),
        Shape::Plus => format!("M{:.1} {y:.1}h7m-3.5 -3.5v7", x - 3.5),
    }
}

/// A moment for people: seconds, or minutes and seconds.
fn moment(at_s: f64) -> String {
    let at_s = at_s.round() as u64;
    if at_s < 600 {
        format!("{at_s} s")
    } else {
        format!("{}:{:02}", at_s / 60, at_s % 60)
    }
}

/// At most as many points as can be told apart; of each stretch the largest, so that no peak is lost.
fn thinned(points: &[(f64, Option<f64>)]) -> Vec<(f64, Option<f64>)> {
    let stretch = points.len().div_ceil(POINTS_MAX).max(1);
    let largest = |stretch: &[(f64, Option<f64>)]| {
        let by_value = |one: &&(f64, Option<f64>), other: &&(f64, Option<f64>)| {
            let value = |point: &(f64, Option<f64>)| point.1.unwrap_or(f64::NEG_INFINITY);
            value(one).total_cmp(&value(other))
        };
        stretch.iter().max_by(by_value).copied()
    };
    points.chunks(stretch).filter_map(largest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::plot::Scale;

    fn layer(form: Form, points: &[(f64, Option<f64>)]) -> Layer {
        Layer {
            name: "a & b".into(),
            form,
            colour: 2,
            points: points.to_vec(),
        }
    }

    fn plot(layers: Vec<Layer>) -> Plot {
        Plot {
            title: "Latency".into(),
            unit: "ms",
            summary: "it is low".into(),
            scale: Scale::linear(10.0),
            layers,
            limits: Vec::new(),
        }
    }

    #[test]
    fn a_hole_breaks_a_line_and_nothing_draws_nothing() {
        let points = [
            (0.0, Some(1.0)),
            (1.0, None),
            (2.0, Some(2.0)),
            (3.0, Some(3.0)),
        ];
        let drawn = svg(&plot(vec![layer(Form::Strong, &points)]), &[], 3.0);
        let line = drawn.lines().find(|line| line.contains("strong"));
        let line = line.expect("a line");
        assert_eq!(line.matches('M').count(), 2, "{line}");
        assert_eq!(line.matches('L').count(), 1, "{line}");
        assert!(drawn.contains("a &amp; b"));
        let none = svg(&plot(vec![layer(Form::Strong, &[(0.0, None)])]), &[], 3.0);
        assert!(!none.contains("strong") && !none.contains("a &amp; b"));
    }

    #[test]
    fn a_peak_survives_thinning() {
        let mut points: Vec<_> = (0..10_000).map(|at| (f64::from(at), Some(1.0))).collect();
        points[5_003].1 = Some(9.0);
        points[5_004].1 = None;
        let thin = thinned(&points);
        assert!(thin.len() <= POINTS_MAX);
        assert!(thin.contains(&(5_003.0, Some(9.0))));
        assert_eq!(thinned(&points[..5]), points[..5]);
    }

    #[test]
    fn areas_lie_on_each_other() {
        let flat = |value| layer(Form::Area, &[(0.0, Some(value)), (1.0, Some(value))]);
        let drawn = svg(&plot(vec![flat(4.0), flat(6.0)]), &[], 1.0);
        let areas: Vec<&str> = drawn.lines().filter(|line| line.contains("area")).collect();
        // The second begins where the first ends, and ends at the top.
        let middle = format!("{:.1}", BOTTOM - (BOTTOM - TOP) * 0.4);
        assert!(areas[0].contains(&middle) && areas[1].contains(&format!("M{LEFT:.1} {middle}")));
        assert!(
            areas[1].contains(&format!("L{LEFT:.1} {TOP:.1}")),
            "{}",
            areas[1]
        );
    }

    #[test]
    fn names_do_not_cover_each_other() {
        let same = |_| layer(Form::Thin, &[(0.0, Some(0.0)), (1.0, Some(0.0))]);
        let drawn = svg(&plot((0..5).map(same).collect()), &[], 1.0);
        let mut heights: Vec<f64> = drawn
            .lines()
            .filter(|line| line.contains("class=\"name"))
            .filter_map(|line| line.split("y=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        heights.sort_by(f64::total_cmp);
        assert_eq!(heights.len(), 5);
        for pair in heights.windows(2) {
            assert!(pair[1] - pair[0] >= NAME_HEIGHT - 0.1, "{heights:?}");
        }
        assert!(heights[4] <= HEIGHT);
    }
}
