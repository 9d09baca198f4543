//! Waiting for a cluster, and saying what is waited for.

use std::time::Duration;

use tokio::time::Instant;

use crate::Failure;
use crate::progress::ProgressReporter;

/// How often a cluster is asked whether it is done.
const INTERVAL: Duration = Duration::from_millis(250);

/// A command that waits, tells what for, and does not wait for ever.
pub(crate) struct Progress {
    started: Instant,
    timeout: Duration,
    reporter: ProgressReporter,
}

/// What a look at the cluster shows.
pub(crate) enum Look<T> {
    /// It is as it should be.
    Done(T),
    /// Not yet: what is still missing, for people.
    Missing(String),
}

/// Why waiting ended without what was waited for.
pub(crate) enum Waited {
    /// The time was over, or it would never come: what was missing.
    InVain(String),
    /// A look at the cluster failed.
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

    /// Tells a person something, with the time that has passed.
    pub(crate) fn tell(&self, text: &str) {
        let seconds = self.started.elapsed().as_secs_f64();
        crate::screen::status!("{seconds:>5.1} s  {}", output::one_line(text));
    }

    /// Looks until it is done, and tells of every change of what is missing.
    ///
    /// # Errors
    /// The time is over, or a look failed.
    pub(crate) async fn until<T>(
        &self,
        mut look: impl AsyncFnMut() -> Result<Look<T>, Failure>,
    ) -> Result<T, Failure> {
        self.look_until(async || Ok(look().await?)).await.map_err(|waited| match waited {
            Waited::InVain(missing) => Failure::environment(missing),
            Waited::Failed(failure) => failure,
        })
    }

    /// The same, for who has more to say of a cluster that does not get there.
    ///
    /// # Errors
    /// The time is over, or a look says that there is nothing to wait for.
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
