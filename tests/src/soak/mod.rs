//! Puts `admit serve` under hostile load, and measures the effect with one well-behaved client.
//!
//! The load consists of watchers and list clients that do not read, idle clients, writers of large objects and of many
//! small values, floods of HTTP/2 frames, HTTP/2 windows of zero bytes and of one byte, and webhooks that hang or send
//! too much, while the storage fills.

mod frames;
mod load;
mod server;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use crate::server_error::ServerError;

use self::load::Load;
pub use self::load::Tally;
use self::server::Attacked;

/// The parameters of the load.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "these are the options of the command")]
pub struct Soak {
    /// The path of the `admit` command.
    pub command: PathBuf,
    /// The duration of the load.
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

/// The reason why the load cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SoakError {
    /// The command does not start, or exits early. Contains its output.
    #[error("{0}")]
    Command(String),
    /// The server cannot be prepared.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// A client cannot be created, or does not get an answer.
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
    /// The time from the start of the load until the end of the interval.
    pub until: Duration,
    /// The resident memory of the server at the end of the interval, in MiB.
    pub resident: u64,
    /// The results of the load in the interval.
    pub tally: Tally,
}

/// The results of the whole run.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Survival {
    /// The peak memory of the server, in MiB.
    pub peak: u64,
    /// Whether a control group enforced the memory limit.
    pub is_confined: bool,
    /// The results of the load in all intervals.
    pub whole: Tally,
    /// The problems that were found; empty if the server withstood the load.
    pub complaints: Vec<String>,
}

/// The minimum number of intervals.
const STRETCHES: u32 = 6;
/// The maximum duration of an interval.
const STRETCH: Duration = Duration::from_secs(60);
/// The maximum 99th percentile of the well-behaved client's response times.
///
/// It is usually 0.2 s on two busy cores, and up to 4 s in an unoptimized build. A higher value means that the server
/// stalled.
const MAX_LATENCY: Duration = Duration::from_secs(10);

impl Soak {
    /// Runs the load, and passes each interval to `tell` when it ends.
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
        survival.complaints.extend(whole.complaints(self, MAX_LATENCY));
        survival.whole = whole;
        Ok(survival)
    }
}

/// The header of the table of intervals.
pub const HEAD: &str = "  time  memory  watchers (cut off)  idle (closed)  written (refused)  kept  tangled  frames  reviews  p50      p99      \
                        longest";

impl fmt::Display for Stretch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tally = &self.tally;
        let time = |percent| format!("{} ms", tally.percentile(percent).as_millis());
        write!(
            f,
            "{:>4} s {:>4} MiB {:>8} {:>10} {:>6} {:>9} {:>7} {:>10} {:>5} {:>8} {:>7} {:>8}  {:<8} {:<8} {}",
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
            tally.frames,
            tally.reviews,
            time(50),
            time(99),
            time(100),
        )
    }
}
