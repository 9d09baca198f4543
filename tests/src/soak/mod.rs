//! A long attack on `admit serve`, by those that it must bear: watchers that do not read, peers that say nothing, writers
//! of large objects and of many small values, lists that nobody reads, webhooks that hang or send too much, while the storage
//! fills. One client that does as it should tells what they cost it.

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

/// How hard, and for how long.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "these are the options of the command")]
pub struct Soak {
    /// The `admit` command.
    pub command: PathBuf,
    /// How long.
    pub lasts: Duration,
    /// What it may have in memory, in MiB.
    pub memory: u64,
    /// Watchers that do not read.
    pub watchers: usize,
    /// Connections on which nothing is said.
    pub idle: usize,
    /// Writers, each of an object of a megabyte.
    pub writers: usize,
}

/// Why there was no attack.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SoakError {
    /// The command does not start, or ends early.
    #[error("{0}")]
    Command(String),
    /// It was not prepared.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// The client cannot be made, or has no answer.
    #[error(transparent)]
    Client(#[from] kube::Error),
    /// A fake does not start.
    #[error(transparent)]
    Fake(#[from] fake_webhooks::StartError),
}

/// What was seen in one stretch of time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stretch {
    /// When it ended, after the beginning.
    pub until: Duration,
    /// What the server had in memory at its end, in MiB.
    pub resident: u64,
    /// What the load came to in it.
    pub tally: Tally,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Survival {
    /// The most that the server ever had in memory, in MiB.
    pub peak: u64,
    /// Whether a control group held it to its limit.
    pub is_confined: bool,
    /// What the load came to in all stretches.
    pub whole: Tally,
    /// What must not be.
    pub complaints: Vec<String>,
}

/// How many lines the table has at least, and how long a stretch takes at most.
const STRETCHES: u32 = 6;
const STRETCH: Duration = Duration::from_secs(60);
/// The longest that 99 of 100 answers to the well-behaved client may take. They take 0.2 s on two busy cores, and up to 4 s of
/// a build without optimization: longer than this is a stall.
const LONGEST: Duration = Duration::from_secs(10);

impl Soak {
    /// Attacks, and tells each stretch as it ends.
    ///
    /// # Errors
    /// The attack could not begin.
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

/// The head of the table of stretches.
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
