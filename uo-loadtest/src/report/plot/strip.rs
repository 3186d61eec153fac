//! The strip above all plots: what was done when, each with its label.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::fmt::Write as _;

use super::draw::{LEFT, RIGHT, WIDTH, x};
use super::{Mark, escape};

/// The height of a row of labels.
const ROW: f64 = 15.0;
/// How wide a letter is taken to be.
const LETTER: f64 = 6.4;
/// Rows of labels; what finds no place has a line and no label.
const ROWS_MAX: usize = 8;

/// The strip of these marks, or nothing if there are none.
pub fn strip(marks: &[Mark], end_s: f64) -> String {
    if marks.is_empty() {
        return String::new();
    }
    let labels: Vec<Label> = marks
        .iter()
        .enumerate()
        .map(|(index, mark)| Label::new(index + 1, mark, end_s))
        .collect();
    let rows = rows(&labels);
    let count = rows.iter().flatten().max().map_or(0, |row| row + 1);
    let height = ROW * count as f64 + 8.0;
    let mut svg = String::new();
    for (label, row) in labels.iter().zip(&rows) {
        let top = row.map_or(height - 8.0, |row| ROW * (row as f64 + 1.0) - 8.0);
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<g class=\"mark\"><path d=\"M{:.1} {top:.1}V{height}\"/></g>",
            label.x
        );
        if row.is_some() {
            let anchor = if label.is_before { "end" } else { "start" };
            let shift = if label.is_before { -5.0 } else { 5.0 };
            let _ = writeln!(
                svg,
                "<text class=\"mark-name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
                label.x + shift,
                top + 6.0,
                escape(&label.text)
            );
        }
    }
    let spoken: Vec<String> = marks
        .iter()
        .map(|mark| format!("{} at {:.0} s", mark.label, mark.at_s))
        .collect();
    format!(
        "<svg class=\"strip\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\n{svg}</svg>\n",
        escape(&format!("What was done: {}", spoken.join(", ")))
    )
}

struct Label {
    x: f64,
    from: f64,
    to: f64,
    is_before: bool,
    text: String,
}

impl Label {
    fn new(number: usize, mark: &Mark, end_s: f64) -> Label {
        let text = format!("{number} {}", mark.label);
        let x = x(mark.at_s, end_s);
        let width = LETTER * text.chars().count() as f64 + 8.0;
        // At the right end it is written before its line.
        let is_before = x + width > WIDTH && x - width > LEFT.min(RIGHT);
        let (from, to) = if is_before {
            (x - width, x + 3.0)
        } else {
            (x - 3.0, x + width)
        };
        Label {
            x,
            from,
            to,
            is_before,
            text,
        }
    }
}

/// The row of each label: the first in which it covers neither another label nor the line of one above it.
fn rows(labels: &[Label]) -> Vec<Option<usize>> {
    let mut placed: Vec<Option<usize>> = Vec::new();
    for label in labels {
        let is_free = |row: &usize| {
            labels.iter().zip(&placed).all(|(other, at)| match at {
                Some(at) if at == row => label.from >= other.to || label.to <= other.from,
                // The line of a label further up passes through this row.
                Some(at) if at < row => other.x < label.from || other.x > label.to,
                // The own line passes through rows further down.
                Some(_) => label.x < other.from || label.x > other.to,
                None => true,
            })
        };
        placed.push((0..ROWS_MAX).find(is_free));
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(at: &[f64]) -> Vec<Mark> {
        let mark = |&at_s: &f64| Mark {
            at_s,
            label: "kill:sim-1".into(),
        };
        at.iter().map(mark).collect()
    }

    #[test]
    fn labels_that_would_cover_each_other_have_rows_of_their_own() {
        let marks = marks(&[10.0, 11.0, 12.0, 60.0, 99.9]);
        let labels: Vec<Label> = marks
            .iter()
            .enumerate()
            .map(|(index, mark)| Label::new(index, mark, 100.0))
            .collect();
        let rows = rows(&labels);
        assert!(rows.iter().all(Option::is_some), "{rows:?}");
        let first: std::collections::BTreeSet<_> = rows[..3].iter().collect();
        assert_eq!(first.len(), 3, "{rows:?}");
        for (one, row) in labels.iter().zip(&rows) {
            for (other, its_row) in labels.iter().zip(&rows) {
                let is_other = one.x != other.x;
                let overlap = one.from < other.to && other.from < one.to;
                assert!(!(is_other && row == its_row && overlap), "{rows:?}");
                let is_crossed = other.x > one.from && other.x < one.to && its_row < row;
                assert!(!(is_other && is_crossed), "{rows:?}");
            }
        }
    }

    #[test]
    fn without_marks_there_is_no_strip() {
        assert_eq!(strip(&[], 10.0), "");
        let drawn = strip(&marks(&[1.0, 2.0]), 10.0);
        assert!(drawn.contains("What was done: kill:sim-1 at 1 s, kill:sim-1 at 2 s"));
        assert!(drawn.contains("2 kill:sim-1</text>"));
    }
}
