//! Puts `admit serve` under hostile load: watchers and list clients that do not read, idle clients, writers of large
//! objects and of many small values, and webhooks that hang or send too much, while the storage fills. One
//! well-behaved client measures the effect.

mod load;
mod server;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use crate::server::ServerError;

use self::load::Load;
pub use self::load::Tally;
use self::server::Attacked;

/// The size and duration of the load.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "these are the options of the command")]
pub struct Soak {
    /// The `admit` command.
    pub command: PathBuf,
    /// The duration.
    pub lasts: Duration,
    /// The memory limit of the server, in MiB.
    pub memory: u64,
    /// The number of watchers that do not read.
    pub watchers: usize,
    /// The number of idle connections.
    pub idle: usize,
    /// The number of clients that write 1 MB objects.
    pub writers: usize,
}

/// An error that prevents the load.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SoakError {
    /// The command does not start, or ends early.
    #[error("{0}")]
    Command(String),
    /// The server cannot be prepared.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// The client cannot be created, or gets no answer.
    #[error(transparent)]
    Client(#[from] kube::Error),
    /// A fake does not start.
    #[error(transparent)]
    Fake(#[from] fake_webhooks::StartError),
}

/// The results of one interval.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stretch {
    /// The end of the interval, from the start.
    pub until: Duration,
    /// The resident memory of the server at the end, in MiB.
    pub resident: u64,
    /// The results of the load in the interval.
    pub tally: Tally,
}

/// The results of all intervals.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Survival {
    /// The peak memory of the server, in MiB.
    pub peak: u64,
    /// Whether a control group enforced the limit.
    pub is_confined: bool,
    /// The total results of the load.
    pub whole: Tally,
    /// The problems.
    pub complaints: Vec<String>,
}

/// The minimum number of lines in the table, and the maximum duration of an interval.
const STRETCHES: u32 = 6;
const STRETCH: Duration = Duration::from_secs(60);
/// The maximum 99th percentile of the well-behaved client's response times. It is 0.2 s on two busy cores, and up to
/// 4 s in an unoptimized build: more than this is a stall.
const LONGEST: Duration = Duration::from_secs(10);

impl Soak {
    /// Runs the load, and reports each interval when it ends.
    ///
    /// # Errors
    /// Returns an error if the load cannot start.
    pub async fn run(&self, tell: &dyn Fn(&Stretch)) -> Result<Survival, SoakError> {
        let mut server = Attacked::start(&self.command, self.memory).await?;
        let load = Load::begin(self, &server).await?;
        let began = Instant::now();
        let mut survival = Survival { is_confined: server.is_confined(), ..Survival::default() };
        let mut whole = Tally::default();
        let stretches = u32::try_from(self.lasts.as_secs().div_ceil(STRETCH.as_secs()))
            .unwrap_or(u32::MAX)
            .max(STRETCHES);
        for stretch in 1..=stretches {
            let end = tokio::time::sleep_until(
                began + self.lasts.mul_f64(f64::from(stretch) / f64::from(stretches)),
            );
            tokio::select! {
                () = end => {}
                ended = server.ended() => {
                    survival.complaints.push(format!("it ended after {} s: {ended}", began.elapsed().as_secs()));
                    return Ok(survival);
                }
            }
            let tally = load.take();
            whole.add(&tally);
            tell(&Stretch { until: began.elapsed(), resident: server.resident(), tally });
        }
        load.end().await;
        survival.peak = server.peak();
        if survival.peak > self.memory {
            let complaint = format!("it had {} MiB in memory, more than {}", survival.peak, self.memory);
            survival.complaints.push(complaint);
        }
        survival.complaints.extend(whole.complaints(self, LONGEST));
        survival.whole = whole;
        Ok(survival)
    }
}

/// The table header.
pub const HEAD: &str = "  time  memory  watchers (cut off)  idle (closed)  written (refused)  kept  tangled  reviews  p50      p99      \
                        longest";

impl fmt::Display for Stretch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tally = &self.tally;
        let time = |percent| format!("{} ms", tally.percentile(percent).as_millis());
        write!(
            f,
            "{:>4} s {:>4} MiB {:>8} {:>10} {:>6} {:>9} {:>7} {:>10} {:>5} {:>8} {:>8}  {:<8} {:<8} {}",
            self.until.as_secs(),
            self.resident,
            tally.watching,
            format!("({})", tally.cut_off),
            tally.idle,
            format!("({})", tally.closed),
            tally.written,
            format!("({})", tally.refused),
            tally.kept,
            tally.tangled,
            tally.reviews,
            time(50),
            time(99),
            time(100),
        )
    }
}
