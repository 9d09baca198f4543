//! Waits until webhooks accept connections.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};

use super::TargetArguments;
use crate::Failure;

/// The interval between attempts to connect.
const PERIOD: Duration = Duration::from_millis(100);

impl TargetArguments {
    /// Waits until every address of `--service` accepts a connection, for at most the number of seconds in `--wait`.
    ///
    /// # Errors
    /// Returns a failure that names the first address that does not accept a connection in this time.
    pub(super) async fn wait_for_services(&self) -> Result<(), Failure> {
        let until = Instant::now() + Duration::from_secs(self.wait.into());
        for (service, (host, port)) in self.services() {
            while !matches!(timeout_at(until, TcpStream::connect((host.as_str(), port))).await, Ok(Ok(_))) {
                if Instant::now() >= until {
                    let (namespace, name, seconds) = (service.namespace, service.name, self.wait);
                    return Err(Failure::environment(format!(
                        "--service {namespace}/{name}: {host}:{port} does not accept connections after {seconds} s \
                         (--wait)"
                    )));
                }
                sleep(PERIOD).await;
            }
        }
        Ok(())
    }
}
