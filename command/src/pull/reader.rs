//! Sends GET requests to the cluster and follows the pages of lists.

use std::time::Duration;

use harness::json::text;
use http::Request;
use serde_json::Value;
use tokio::time::timeout;
use url::form_urlencoded::Serializer;

use crate::Failure;
use crate::cluster_client::with_causes;
use crate::documents::take_items;

/// The time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The number of objects on a page. Only one page is in memory.
const PAGE: &str = "100";
/// The maximum number of objects of one list.
const MAX_OBJECTS: usize = 100_000;
/// The maximum number of times to read a list. The server rejects old `continue` tokens.
const MAX_ATTEMPTS: usize = 3;

/// Reads objects from the cluster.
pub(super) struct Reader {
    client: kube::Client,
}

/// The reason why an object or a list could not be read.
pub(super) enum ReadError {
    /// The server does not have the object or does not serve the resource.
    NotFound,
    /// The server rejected the request or did not respond in time. The pull continues.
    Rejected {
        /// The HTTP status code; 0 without a response.
        code: u16,
        /// The reason in the server's `Status`, such as `Forbidden`.
        reason: String,
        /// The message of the server.
        message: String,
    },
    /// The pull cannot continue.
    Failure(Failure),
}

impl From<Failure> for ReadError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl Reader {
    pub(super) fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// Returns the JSON object at `path`, which may contain a query.
    pub(super) async fn get(&self, path: &str) -> Result<Value, ReadError> {
        let request = Request::get(path).body(Vec::new()).map_err(Failure::environment)?;
        let Ok(response) = timeout(TIMEOUT, self.client.request::<Value>(request)).await else {
            return Err(ReadError::Rejected {
                code: 0,
                reason: "Timeout".to_owned(),
                message: format!("no response within {} s", TIMEOUT.as_secs()),
            });
        };
        response.map_err(|error| {
            if let kube::Error::Api(status) = &error
                && status.code != 401
            {
                let (reason, message) = (status.reason.clone(), status.message.clone());
                return match status.code {
                    404 => ReadError::NotFound,
                    code => ReadError::Rejected { code, reason, message },
                };
            }
            Failure::environment(format!("cannot read {path}: {}", with_causes(&error))).into()
        })
    }

    /// Lists the objects at `path` and passes each to `take`. Objects have `apiVersion` and `kind`.
    ///
    /// `selector` contains the query parameters `fieldSelector` and `labelSelector`.
    pub(super) async fn list(
        &self,
        path: &str,
        selector: &[(&str, &str)],
        mut take: impl FnMut(Value) -> Result<(), Failure>,
    ) -> Result<(), ReadError> {
        let mut next = String::new();
        let mut count = 0;
        let mut attempts = 1;
        loop {
            let mut query = Serializer::new(String::new());
            query.extend_pairs(selector).append_pair("limit", PAGE);
            if !next.is_empty() {
                query.append_pair("continue", &next);
            }
            let mut page = match self.get(&format!("{path}?{}", query.finish())).await {
                Err(ReadError::Rejected { code: 410, .. }) if attempts < MAX_ATTEMPTS => {
                    (next, count, attempts) = (String::new(), 0, attempts + 1);
                    continue;
                }
                page => page?,
            };
            let following = text(&page, &["metadata", "continue"]).to_owned();
            let items = take_items(&mut page).ok_or_else(|| {
                Failure::environment(format!("cannot read {path}: the server did not return a list"))
            })?;
            count += items.len();
            let rejected = |reason: &str, message: String| ReadError::Rejected {
                code: 0,
                reason: reason.to_owned(),
                message,
            };
            if count > MAX_OBJECTS {
                return Err(rejected(
                    "TooManyObjects",
                    format!("the list has more than {MAX_OBJECTS} objects"),
                ));
            }
            if following == next && !next.is_empty() {
                return Err(rejected(
                    "RepeatedToken",
                    "the server returned a continue token twice".to_owned(),
                ));
            }
            items.into_iter().try_for_each(&mut take)?;
            if following.is_empty() {
                return Ok(());
            }
            next = following;
        }
    }
}
