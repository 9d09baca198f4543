//! `--ui`: a page on loopback that shows the requests of the server as they come.
//!
//! [`recent`] keeps the last requests, and [`question`] answers which webhooks would be called. [`listener`] serves the
//! page on its own port, [`access`] decides who may use it, and [`routes`] responds. The page itself is the one of HTML reports, whose sources are in the top-level folder
//! `report`.

mod access;
mod listener;
mod question;
mod recent;
mod routes;
mod stalled;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::access::Access;
use self::listener::{Serving, Socket};
use self::recent::{MAX_REQUEST_BYTES, Recent};
use fake_webhooks::Fleet;
use harness::server::ApiServer;

use self::routes::Shared;
use crate::request_report::Report;
use crate::{Failure, screen};

/// The server of the page before it starts: its bound socket, access rules, link, and recent requests.
#[derive(Debug)]
pub(crate) struct Ui {
    socket: Socket,
    access: Access,
    recent: Arc<Recent>,
    link: String,
}

impl Ui {
    /// Binds a port on loopback.
    ///
    /// # Errors
    /// Returns an error if no port is available.
    pub(super) fn bind() -> Result<Self, Failure> {
        let socket = Socket::bind()
            .map_err(|error| Failure::environment(format!("--ui: cannot listen on loopback: {error}")))?;
        let (access, link) = Access::new(socket.port)?;
        Ok(Self { socket, access, recent: Arc::new(Recent::new()), link })
    }

    /// Returns a function that shows a request on the page.
    pub(super) fn observer(&self) -> impl Fn(Report) + Send + Sync + 'static {
        let recent = Arc::clone(&self.recent);
        move |mut report| {
            report.mask_secrets();
            // Serialization cannot fail: all members are strings, numbers, and JSON.
            let mut json = serde_json::to_string(&report).unwrap_or_default();
            if json.len() > MAX_REQUEST_BYTES {
                report.without_reviews();
                json = serde_json::to_string(&report).unwrap_or_default();
            }
            recent.add(&json);
        }
    }

    /// Serves the page, and prints the link to it.
    ///
    /// # Errors
    /// Returns an error if the socket cannot be used.
    pub(super) fn start(self, server: ApiServer, fakes: Option<Arc<Fleet>>) -> Result<RunningUi, Failure> {
        let Self { socket, access, recent, link } = self;
        let shared = Shared::new(Arc::new(access), recent, server, fakes);
        let serving = socket.serve(routes::router(shared))?;
        screen::print(&announcement(&link))?;
        Ok(RunningUi(serving))
    }
}

/// Returns the line that tells the user where the page is.
fn announcement(link: &str) -> String {
    format!("UI (this link works once): {link}\n")
}

/// A page that is being served.
#[derive(Debug)]
pub(super) struct RunningUi(Serving);

impl RunningUi {
    /// Closes the connections of all browsers.
    pub(super) async fn stop(self) {
        self.0.stop().await;
    }
}
