//! Sends requests on behalf of webhooks before they respond, so that another request can finish first.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Path, State};
use axum::routing::post;
use axum::{Json, Router};
use fake_webhooks::{Behavior, SideEffect, Target, Write};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::case::{Case, Request};
use crate::names::Names;
use crate::objects::{self, title};
use crate::run_error::RunError;
use crate::server::Server;
use crate::transport::send;

/// A listener that sends requests on behalf of webhooks.
///
/// A fake only sends a signal to this listener, so that the request is sent in the same way as the requests of the
/// case.
pub(crate) struct ConcurrentRequests {
    address: SocketAddr,
    requests: Arc<Requests>,
    serving: JoinHandle<()>,
}

/// The placeholder for the name of the object in the review.
const NAME_OF_THE_CALL: &str = "<name of the review>";

struct Requests {
    client: kube::Client,
    names: Names,
    /// The pending requests of each webhook, by its name, with one entry for each call.
    pending: Mutex<BTreeMap<String, Vec<Option<Request>>>>,
    /// The requests that were sent, with their answers.
    answered: Mutex<Vec<Value>>,
}

impl ConcurrentRequests {
    /// Starts the listener for the webhooks of `case`. Returns `None` if they do not send requests.
    pub(crate) async fn start(case: &Case, names: &Names, server: &Server) -> Result<Option<Self>, RunError> {
        let ended = |error: std::io::Error| RunError::Ended(error.to_string());
        let mut pending = BTreeMap::new();
        for webhook in case.webhooks.iter().filter(|webhook| !webhook.meanwhile.is_empty()) {
            let mut requests = webhook.meanwhile.clone();
            requests.reverse();
            pending.insert(webhook.name.clone(), requests);
        }
        if pending.is_empty() {
            return Ok(None);
        }
        let requests = Arc::new(Requests {
            client: server.client().clone(),
            names: names.clone(),
            pending: Mutex::new(pending),
            answered: Mutex::default(),
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(ended)?;
        let address = listener.local_addr().map_err(ended)?;
        let router = Router::new().route("/{webhook}", post(knock)).with_state(Arc::clone(&requests));
        let serving = tokio::spawn(async move {
            // The server stops when the run of the case ends, which aborts its task.
            drop(axum::serve(listener, router).await);
        });
        Ok(Some(Self { address, requests, serving }))
    }

    /// Returns the behavior `then`, preceded by the next request of the webhook.
    pub(crate) fn behavior(&self, webhook: &str, then: &Behavior) -> Result<Behavior, RunError> {
        let url = format!("http://{}/{webhook}", self.address);
        let url = Target::try_from(url).map_err(RunError::Ended)?;
        let write = Write {
            url,
            kubeconfig: None,
            token: String::new(),
            ca_bundle: String::new(),
            body: json!({"name": "{name}"}),
            after: std::time::Duration::ZERO.into(),
        };
        Ok(Behavior::SideEffect(SideEffect { write: Some(Box::new(write)), then: Box::new(then.clone()) }))
    }

    /// Returns the requests that were sent since the last call of this function, with their answers.
    pub(crate) fn answers(&self) -> Vec<Value> {
        std::mem::take(&mut *self.requests.answered.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for ConcurrentRequests {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Sends the next request of the webhook, and makes the webhook wait for the answer.
async fn knock(State(requests): State<Arc<Requests>>, Path(webhook): Path<String>, Json(call): Json<Value>) {
    let next = {
        let mut pending = requests.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.get_mut(&webhook).and_then(Vec::pop).flatten()
    };
    let Some(request) = next else { return };
    let mut sent = request.clone();
    if sent.name == NAME_OF_THE_CALL {
        call["name"].as_str().unwrap_or_default().clone_into(&mut sent.name);
    }
    let answer = match send(&requests.client, objects::message(&sent, &requests.names)).await {
        Ok(answer) => answer.recorded(),
        Err(error) => json!(error.to_string()),
    };
    let answered = json!({"webhook": webhook, "request": title(&request), "answer": answer});
    requests.answered.lock().unwrap_or_else(PoisonError::into_inner).push(answered);
}
