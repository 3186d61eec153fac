//! Plots over time as inline SVG: no script, no style but classes of the page they are in.
//!
//! Reading order:
//! - this file: what a plot shows;
//! - [`scale`]: where a value is on an axis;
//! - [`draw`]: the drawing;
//! - [`mod@strip`]: the marks above all plots, with their labels.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod draw;
mod scale;
mod strip;

pub use draw::svg;
pub use scale::Scale;
pub use strip::strip;

/// A plot over time.
#[derive(Clone, PartialEq, Debug)]
pub struct Plot {
    /// What it is about.
    pub title: String,
    /// What is written at the vertical axis: a unit, or what is counted.
    pub unit: &'static str,
    /// What it says, in a sentence, for people who do not see it.
    pub summary: String,
    /// Of the vertical axis.
    pub scale: Scale,
    /// What is drawn, from the back to the front.
    pub layers: Vec<Layer>,
    /// Values that matter, as horizontal lines.
    pub limits: Vec<(f64, String)>,
}

/// One thing that is drawn.
#[derive(Clone, PartialEq, Debug)]
pub struct Layer {
    /// Its name, written at its end.
    pub name: String,
    /// How it is drawn.
    pub form: Form,
    /// Which of the page's colours it has; see [`COLOURS`].
    pub colour: usize,
    /// Seconds and values; none is a hole.
    pub points: Vec<(f64, Option<f64>)>,
}

/// How values are drawn. No two layers of a plot differ by their colour alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// A strong line.
    Strong,
    /// A thin line.
    Thin,
    /// A dashed line.
    Dashed,
    /// An area from below; areas of one plot are stacked.
    Area,
    /// A dot for each value, of this shape.
    Dots(Shape),
}

/// Shapes of dots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// ●
    Circle,
    /// ■
    Square,
    /// ▲
    Triangle,
    /// ◆
    Diamond,
    /// ×
    Cross,
    /// +
    Plus,
}

impl Shape {
    /// All of them.
    pub const ALL: [Shape; 6] = [
        Shape::Circle,
        Shape::Square,
        Shape::Triangle,
        Shape::Diamond,
        Shape::Cross,
        Shape::Plus,
    ];
}

/// Colours that the page defines, as classes `c0` and so on.
pub const COLOURS: usize = 7;

/// Something that was done at a moment.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    /// When, in seconds.
    pub at_s: f64,
    /// What, in a word or two.
    pub label: String,
}

/// Text that is safe inside an element or an attribute.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // XML has no way to write these.
            letter if letter.is_control() && letter != '\n' && letter != '\t' => {
                safe.push('\u{fffd}')
            }
            letter => safe.push(letter),
        }
    }
    safe
}

/// A value for people, with as many digits as are needed.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 10_000.0 => format!("{:.0}k", value / 1e3),
        size if size >= 100.0 || (value - value.round()).abs() < 1e-9 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_written_can_end_an_element() {
        assert_eq!(
            escape("<b title=\"x\">'&\u{1}"),
            "&lt;b title=&quot;x&quot;&gt;&#39;&amp;\u{fffd}"
        );
    }

    #[test]
    fn numbers_have_the_digits_they_need() {
        let shown = [0.25, 1.0, 33.27, 2_900.4, 20_000.0].map(number);
        assert_eq!(shown, ["0.25", "1", "33.3", "2900", "20k"]);
    }
}
