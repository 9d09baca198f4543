//! Stores benchmark results, and compares two runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The table header above the lines of [`Measured::line`].
pub(crate) const HEADING: &str = "benchmark                                      wall p50     wall p99      CPU p50  allocations        bytes  samples";

/// The minimum noise threshold, in percent, because two runs of the same program can differ by this much.
const NOISE: f64 = 10.0;

/// All results of a run, by benchmark name.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Results(BTreeMap<String, Measured>);

/// The cost of one operation. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) samples: usize,
    pub(crate) wall_p50: f64,
    pub(crate) wall_p99: f64,
    pub(crate) cpu_p10: f64,
    pub(crate) cpu_p50: f64,
    pub(crate) allocations: f64,
    pub(crate) bytes: f64,
}

impl Measured {
    pub(crate) fn line(&self, name: &str) -> String {
        let Self { samples, wall_p50, wall_p99, cpu_p50, allocations, bytes, .. } = self;
        let [p50, p99, cpu] = [wall_p50, wall_p99, cpu_p50].map(|nanos| time(*nanos));
        format!("{name:<42} {p50:>12} {p99:>12} {cpu:>12} {allocations:>12.1} {bytes:>12.0} {samples:>8}")
    }

    /// Returns the noise threshold for two medians of CPU time.
    ///
    /// It is the larger spread of the faster halves of both runs, but at least [`NOISE`].
    fn noise(&self, other: &Self) -> f64 {
        let spread = |measured: &Self| percent(measured.cpu_p10, measured.cpu_p50);
        spread(self).max(spread(other)).max(NOISE)
    }
}

fn time(nanos: f64) -> String {
    match nanos {
        ..1e3 => format!("{nanos:.0} ns"),
        ..1e6 => format!("{:.2} µs", nanos / 1e3),
        _ => format!("{:.2} ms", nanos / 1e6),
    }
}

fn percent(old: f64, new: f64) -> f64 {
    if old == 0.0 { 0.0 } else { (new - old) / old * 100.0 }
}

impl Results {
    pub(crate) fn insert(&mut self, name: &str, measured: Measured) {
        self.0.insert(name.to_owned(), measured);
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Measured> {
        self.0.get(name)
    }

    pub(crate) fn read(file: &Path) -> Self {
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
    }

    pub(crate) fn write(&self, file: &Path) {
        std::fs::write(file, serde_json::to_vec_pretty(self).unwrap()).unwrap();
    }

    /// Returns a line for each benchmark that differs between the two runs.
    ///
    /// A benchmark differs if it is new, if its allocations changed, or if its CPU time changed by more than the noise.
    pub(crate) fn changes(&self, new: &Self) -> String {
        let mut text = String::new();
        for (name, new) in &new.0 {
            let Some(old) = self.0.get(name) else {
                let _ = writeln!(text, "{name:<42} new");
                continue;
            };
            let (cpu, allocations) = (percent(old.cpu_p50, new.cpu_p50), new.allocations - old.allocations);
            if cpu.abs() > old.noise(new) || allocations.abs() >= 1.0 {
                let (before, after) = (time(old.cpu_p50), time(new.cpu_p50));
                let _ = writeln!(
                    text,
                    "{name:<42} CPU {before:>10} -> {after:>10} ({cpu:+.0} %, noise {:.0} %), allocations {:.1} -> {:.1}",
                    old.noise(new),
                    old.allocations,
                    new.allocations,
                );
            }
        }
        for name in self.0.keys().filter(|name| !new.0.contains_key(*name)) {
            let _ = writeln!(text, "{name:<42} gone");
        }
        if text.is_empty() { "nothing changed beyond the noise".to_owned() } else { text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(name: &str, cpu: f64, allocations: f64) -> Results {
        let measured = Measured {
            samples: 100,
            wall_p50: cpu,
            wall_p99: cpu,
            cpu_p10: cpu * 0.95,
            cpu_p50: cpu,
            allocations,
            bytes: 0.0,
        };
        Results(BTreeMap::from([(name.to_owned(), measured)]))
    }

    #[test]
    fn difference_within_the_noise_is_not_a_change() {
        let old = results("a", 100.0, 7.0);
        assert_eq!(old.changes(&results("a", 109.0, 7.5)), "nothing changed beyond the noise");
        assert!(old.changes(&results("a", 120.0, 7.0)).contains("(+20 %"));
        assert!(old.changes(&results("a", 100.0, 9.0)).contains("7.0 -> 9.0"));
        assert!(old.changes(&results("b", 100.0, 7.0)).contains("gone"));
    }
}
