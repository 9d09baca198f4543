//! Waits for a cluster and reports which state the command is waiting for.

use std::time::Duration;

use tokio::time::Instant;

use crate::Failure;
use crate::progress::ProgressReporter;

/// The interval between two checks of the cluster.
const INTERVAL: Duration = Duration::from_millis(250);

/// Reports the progress of a command that waits for a cluster, and limits the waiting time.
pub(crate) struct Progress {
    started: Instant,
    timeout: Duration,
    reporter: ProgressReporter,
}

/// The result of one check of the cluster.
pub(crate) enum Look<T> {
    /// The cluster is in the desired state.
    Done(T),
    /// The cluster is not in the desired state yet; contains a description of what is missing.
    Missing(String),
}

/// The reason why waiting ended before the desired state was reached.
pub(crate) enum Waited {
    /// The timeout expired or the state cannot be reached; contains a description of what was missing.
    InVain(String),
    /// A check of the cluster failed.
    Failed(Failure),
}

impl From<Failure> for Waited {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Progress {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { started: Instant::now(), timeout, reporter: ProgressReporter::new(false) }
    }

    /// Prints a message with the elapsed time.
    pub(crate) fn tell(&self, text: &str) {
        let seconds = self.started.elapsed().as_secs_f64();
        crate::screen::status!("{seconds:>5.1} s  {}", output::one_line(text));
    }

    /// Repeats a check until the cluster is in the desired state.
    ///
    /// Prints what is missing each time the description changes.
    ///
    /// # Errors
    /// Returns an error if the timeout expires or a check returns an error.
    pub(crate) async fn until<T>(
        &self,
        mut look: impl AsyncFnMut() -> Result<Look<T>, Failure>,
    ) -> Result<T, Failure> {
        self.look_until(async || Ok(look().await?)).await.map_err(|waited| match waited {
            Waited::InVain(missing) => Failure::environment(missing),
            Waited::Failed(failure) => failure,
        })
    }

    /// Repeats a check as [`Self::until`] does, but returns the reason why waiting ended as a [`Waited`].
    ///
    /// # Errors
    /// Returns an error if the timeout expires or a check reports that the state cannot be reached.
    pub(crate) async fn look_until<T>(
        &self,
        mut look: impl AsyncFnMut() -> Result<Look<T>, Waited>,
    ) -> Result<T, Waited> {
        let mut told = String::new();
        loop {
            match look().await? {
                Look::Done(done) => {
                    self.reporter.finish();
                    return Ok(done);
                }
                Look::Missing(missing) if self.started.elapsed() >= self.timeout => {
                    let seconds = self.timeout.as_secs();
                    return Err(Waited::InVain(format!(
                        "gave up after {seconds} s of waiting for {missing}"
                    )));
                }
                Look::Missing(missing) => {
                    let activity = format!("waiting for {missing}");
                    self.reporter.report(&activity, 0, None, "");
                    if missing != told {
                        self.tell(&activity);
                        told = missing;
                    }
                }
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waiting_ends_when_it_is_done_or_the_time_is_over() {
        let mut looks = 0;
        let progress = Progress::new(Duration::from_secs(60));
        let done = progress.until(async || {
            looks += 1;
            Ok(if looks == 2 { Look::Done("done") } else { Look::Missing("something".to_owned()) })
        });
        assert_eq!(done.await.unwrap(), "done");
        assert_eq!(looks, 2);
        let progress = Progress::new(Duration::ZERO);
        let never = progress.until(async || Ok(Look::<()>::Missing("something".to_owned())));
        let failure = never.await.unwrap_err();
        assert_eq!(failure.to_string(), "gave up after 0 s of waiting for something");
    }
}
