//! Measures how the cost grows with the number of webhooks, requests, and objects.

use std::fmt::Write as _;

use crate::results::Results;

/// Series of benchmarks that differ in one size: a description of the size, and the name and size of each benchmark.
const SERIES: [(&str, &[(&str, f64)]); 6] = [
    (
        "webhooks of which none matches",
        &[
            ("dispatch/no match/10", 10.0),
            ("dispatch/no match/100", 100.0),
            ("dispatch/no match/1000", 1000.0),
        ],
    ),
    (
        "webhooks that are called one after another",
        &[
            ("dispatch/10 match/10", 10.0),
            ("dispatch/100 match/100", 100.0),
            ("dispatch/1000 match/1000", 1000.0),
        ],
    ),
    (
        "webhooks that are called at once",
        &[("dispatch/validating/1/1 KiB", 1.0), ("dispatch/validating/10/1 KiB", 10.0)],
    ),
    (
        "requests at once, for each",
        &[
            ("dispatch/allow/1 KiB", 1.0),
            ("dispatch/allow, 4 at once", 4.0),
            ("dispatch/allow, 16 at once", 16.0),
            ("dispatch/allow, 64 at once", 64.0),
        ],
    ),
    (
        "bytes of an object that is allowed",
        &[
            ("dispatch/allow/1 KiB", 1024.0),
            ("dispatch/allow/32 KiB", 32768.0),
            ("dispatch/allow/1 MiB", 1_048_576.0),
        ],
    ),
    (
        "bytes of an object that is patched",
        &[
            ("dispatch/patch/1 KiB", 1024.0),
            ("dispatch/patch/32 KiB", 32768.0),
            ("dispatch/patch/1 MiB", 1_048_576.0),
        ],
    ),
];

/// Returns a line for each measured series, with the log-log slope of CPU time over size between consecutive sizes.
///
/// A slope of 1 means linear growth; 0 means constant time.
pub(crate) fn report(results: &Results) -> String {
    let mut text = String::new();
    for (what, series) in SERIES {
        let measured: Option<Vec<(f64, f64)>> =
            series.iter().map(|(name, size)| Some((*size, results.get(name)?.cpu_p50))).collect();
        let Some(measured) = measured else { continue };
        let slopes: Vec<String> = measured
            .iter()
            .zip(measured.iter().skip(1))
            .map(|(small, large)| format!("{:.2}", slope(*small, *large)))
            .collect();
        let _ = writeln!(text, "growth with {what:<44} {}", slopes.join(", "));
    }
    text
}

fn slope(small: (f64, f64), large: (f64, f64)) -> f64 {
    (large.1 / small.1).ln() / (large.0 / small.0).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Measured;

    #[test]
    fn linear_growth_has_the_slope_1_and_a_series_that_was_not_measured_none() {
        let mut results = Results::default();
        for (name, cpu_p50) in [("no match/10", 50.0), ("no match/100", 500.0), ("no match/1000", 50_000.0)] {
            results.insert(&format!("dispatch/{name}"), Measured { cpu_p50, ..Measured::default() });
        }
        let report = report(&results);
        assert!(report.ends_with(" 1.00, 2.00\n"), "{report}");
        assert_eq!(report.lines().count(), 1);
    }
}
