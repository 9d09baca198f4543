//! Runs the benchmarks one after another.
#![expect(clippy::cast_precision_loss, reason = "no figure is as large as 2^52")]

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::results::{Measured, Results};

/// The minimum duration of one sample, which is many times the cost of reading two clocks.
const SAMPLE: Duration = Duration::from_micros(100);
/// The minimum number of samples. Fewer samples do not have a 99th percentile.
const SAMPLES: usize = 100;
/// The maximum number of operations during warm-up.
const WARM_UP: usize = 200;
/// The number of operations while allocations are counted.
const COUNTED: usize = 20;

/// Runs benchmarks, prints their results, and keeps them.
pub(crate) struct Meter {
    names: Vec<String>,
    time: Duration,
    runtime: Runtime,
    results: Results,
}

impl Meter {
    /// Creates a meter for the benchmarks whose names contain one of `names`.
    ///
    /// If `names` is empty, the meter runs all benchmarks. Each benchmark is measured for about `time`.
    pub(crate) fn new(names: Vec<String>, time: Duration) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { names, time, runtime, results: Results::default() }
    }

    /// Returns the runtime that runs the operations.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn into_results(self) -> Results {
        self.results
    }

    /// Returns whether any benchmark whose name begins with `group` may be selected.
    pub(crate) fn wants(&self, group: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| name.contains(group) || group.contains(name))
    }

    /// Measures `operation` on the value that `prepare` returns. `prepare` is not measured.
    pub(crate) fn measure<T>(
        &mut self,
        name: &str,
        prepare: impl FnMut() -> T,
        operation: impl AsyncFnMut(&mut T),
    ) {
        self.measure_several(name, 1, prepare, operation);
    }

    /// Measures an operation that consists of `count` equal parts, and reports the cost of one part.
    pub(crate) fn measure_several<T>(
        &mut self,
        name: &str,
        count: u32,
        mut prepare: impl FnMut() -> T,
        mut operation: impl AsyncFnMut(&mut T),
    ) {
        if !self.is_wanted(name) {
            return;
        }
        let runtime = &self.runtime;
        let mut sample = |times: usize| {
            let mut items: Vec<T> = std::iter::repeat_with(&mut prepare).take(times).collect();
            let mut taken = (Duration::ZERO, Duration::ZERO);
            let allocations = allocation_counter::measure(|| {
                runtime.block_on(async {
                    let (started, cpu) = (Instant::now(), thread_time());
                    for item in &mut items {
                        operation(item).await;
                    }
                    taken = (started.elapsed(), thread_time().saturating_sub(cpu));
                });
            });
            (taken, allocations)
        };
        let started = Instant::now();
        for _ in 0..WARM_UP {
            sample(1);
            if started.elapsed() > self.time {
                break;
            }
        }
        let ((once, _), _) = sample(1);
        let (_, allocations) = sample(COUNTED);
        let (_, of_none) = sample(0);
        let times = usize::try_from((SAMPLE.as_nanos() / once.as_nanos().max(10)).clamp(1, 1000)).unwrap();
        let (mut walls, mut cpus) = (Vec::new(), Vec::new());
        let started = Instant::now();
        let slowest = self.time * 10;
        while started.elapsed() < self.time || (walls.len() < SAMPLES && started.elapsed() < slowest) {
            let ((wall, cpu), _) = sample(times);
            walls.push(each(wall, times, count));
            cpus.push(each(cpu, times, count));
        }
        let counted =
            |total: u64, none: u64| total.saturating_sub(none) as f64 / f64::from(count) / COUNTED as f64;
        let measured = Measured {
            samples: walls.len(),
            wall_p50: percentile(&mut walls, 50),
            wall_p99: percentile(&mut walls, 99),
            cpu_p10: percentile(&mut cpus, 10),
            cpu_p50: percentile(&mut cpus, 50),
            allocations: counted(allocations.count_total, of_none.count_total),
            bytes: counted(allocations.bytes_total, of_none.bytes_total),
        };
        self.record(name, measured);
    }

    /// Prints and keeps a result that the caller measured.
    pub(crate) fn record(&mut self, name: &str, measured: Measured) {
        println!("{}", measured.line(name));
        self.results.insert(name, measured);
    }

    /// Returns whether the benchmark `name` is selected.
    pub(crate) fn is_wanted(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| name.contains(wanted))
    }
}

/// Returns the CPU time that this thread has used in user and system mode.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = Duration::from_secs(time.tv_sec.unsigned_abs());
    seconds + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}

/// Returns the number of nanoseconds for each of `count` parts of an operation that was performed `times` times.
fn each(taken: Duration, times: usize, count: u32) -> f64 {
    taken.as_nanos() as f64 / times as f64 / f64::from(count)
}

fn percentile(samples: &mut [f64], percent: usize) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    let index = (samples.len() * percent / 100).min(samples.len().saturating_sub(1));
    samples.get(index).copied().unwrap_or_default()
}
