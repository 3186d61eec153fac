//! Scales of axes: where a value is, and which values are written beside the axis.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

/// From a value to a place between 0 and 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scale {
    /// From zero to a most.
    Linear {
        /// Where the axis ends.
        max: f64,
        /// Between two ticks.
        step: f64,
    },
    /// By powers of ten; what is below the least is drawn there.
    Log {
        /// The exponent where the axis begins.
        low: i32,
        /// Where it ends.
        high: i32,
    },
}

/// About so many steps are on a linear axis.
const STEPS: f64 = 4.0;
/// Powers of ten that a logarithmic axis has at most.
const DECADES_MAX: i32 = 6;

impl Scale {
    /// From zero to at least `most`, in round steps.
    pub fn linear(most: f64) -> Scale {
        let most = if most.is_finite() && most > 0.0 {
            most
        } else {
            1.0
        };
        let step = round_step(most / STEPS);
        Scale::Linear {
            max: (most / step).ceil() * step,
            step,
        }
    }

    /// By powers of ten from `least` to `most`.
    pub fn log(least: f64, most: f64) -> Scale {
        let exponent = |value: f64| value.max(1e-6).log10();
        let high = (exponent(most).ceil() as i32).max(1);
        let low = (exponent(least).floor() as i32).clamp(high - DECADES_MAX, high - 1);
        Scale::Log { low, high }
    }

    /// A linear scale, or a logarithmic one where a few values are so large that all others could not be told apart.
    pub fn fitting(values: &[f64]) -> Scale {
        let mut values: Vec<f64> = values
            .iter()
            .copied()
            .filter(|value| value.is_finite() && *value > 0.0)
            .collect();
        values.sort_by(f64::total_cmp);
        let (Some(&least), Some(&most)) = (values.first(), values.last()) else {
            return Scale::linear(1.0);
        };
        let middle = values[values.len() / 2];
        if most > 8.0 * middle {
            Scale::log(least, most)
        } else {
            Scale::linear(most)
        }
    }

    /// Where a value is: 0 at the axis' begin, 1 at its end.
    pub fn place(&self, value: f64) -> f64 {
        let place = match *self {
            Scale::Linear { max, .. } => value / max,
            Scale::Log { low, high } => {
                let exponent = value.max(1e-9).log10();
                (exponent - f64::from(low)) / f64::from(high - low)
            }
        };
        place.clamp(0.0, 1.0)
    }

    /// The values that are written beside the axis.
    pub fn ticks(&self) -> Vec<f64> {
        match *self {
            Scale::Linear { max, step } => {
                let steps = (max / step).round() as u32;
                (0..=steps).map(|at| f64::from(at) * step).collect()
            }
            Scale::Log { low, high } => (low..=high).map(|at| 10f64.powi(at)).collect(),
        }
    }

    /// Whether it goes by powers of ten.
    pub fn is_log(&self) -> bool {
        matches!(self, Scale::Log { .. })
    }
}

/// The moments that are written below a plot of so many seconds.
pub fn moments(end_s: f64) -> Vec<f64> {
    const STEPS_S: [f64; 12] = [
        1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0,
    ];
    let fits = |step: &&f64| end_s / **step <= 10.0;
    let step = STEPS_S.iter().find(fits).copied().unwrap_or(end_s / 10.0);
    let count = (end_s / step + 1e-9).floor().max(0.0) as u32;
    (0..=count).map(|at| f64::from(at) * step).collect()
}

/// The smallest of 1, 2, 2.5, 5 and 10 times a power of ten that is not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    let step = steps.iter().find(|step| **step * power >= least * 0.999);
    step.unwrap_or(&10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_axis_ends_at_a_round_number_above_all_values() {
        for most in [0.3, 1.0, 7.0, 33.0, 99.0, 1_000.0, 98_765.0] {
            let scale = Scale::linear(most);
            let ticks = scale.ticks();
            let last = *ticks.last().expect("ticks");
            assert!(
                last >= most && last < most * 2.0 + 1e-9,
                "{most}: {ticks:?}"
            );
            assert!((3..=6).contains(&ticks.len()), "{most}: {ticks:?}");
            assert!((scale.place(last) - 1.0).abs() < 1e-9);
        }
        assert_eq!(Scale::linear(33.0).ticks(), [0.0, 10.0, 20.0, 30.0, 40.0]);
        for nothing in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Scale::linear(nothing), Scale::linear(1.0));
        }
    }

    #[test]
    fn a_few_giants_make_the_axis_logarithmic() {
        let mut values = vec![50.0; 100];
        assert!(!Scale::fitting(&values).is_log());
        values.push(2_900.0);
        let scale = Scale::fitting(&values);
        assert_eq!(scale, Scale::Log { low: 1, high: 4 });
        assert_eq!(scale.ticks(), [10.0, 100.0, 1_000.0, 10_000.0]);
        assert_eq!(scale.place(100.0), 1.0 / 3.0);
        assert_eq!((scale.place(0.0), scale.place(1e9)), (0.0, 1.0));
        assert_eq!(Scale::fitting(&[]), Scale::linear(1.0));
    }

    #[test]
    fn moments_are_round_and_few() {
        assert_eq!(moments(60.0).len(), 7);
        assert_eq!(moments(150.0)[1], 15.0);
        assert!(moments(14_400.0).len() <= 11);
        assert_eq!(moments(0.0), [0.0]);
    }
}
