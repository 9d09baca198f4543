//! Runs the conversion webhooks of a case, and adds their addresses to definitions.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certs::CertificateAuthority;
use fake_webhooks::{Authority, Fake, FakeWebhook};
use serde_json::{Value, json};

use crate::case::{Case, Converter, Request};
use crate::run_error::RunError;
use crate::webhooks::sent;

/// The running conversion webhooks of a case.
#[derive(Debug)]
pub(crate) struct Converters {
    running: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    converter: Converter,
    fake: FakeWebhook,
    /// The number of journal entries before the requests of the case.
    before: usize,
}

impl Converters {
    /// Starts the conversion webhooks of a case.
    pub(crate) async fn start(case: &Case, authority: &Arc<CertificateAuthority>) -> Result<Self, RunError> {
        let mut running = Vec::new();
        for converter in &case.converters {
            let fake = FakeWebhook::start(Fake {
                behavior: converter.behavior.clone(),
                certificate: converter.certificate,
                connection: converter.connection,
                authority: Authority::Shared(Arc::clone(authority)),
                ..Fake::default()
            })
            .await?;
            running.push(Running { converter: converter.clone(), fake, before: 0 });
        }
        Ok(Self { running })
    }

    /// Returns the object with the address and the CA of each converter to which it refers.
    pub(crate) fn filled(&self, object: &Value) -> Value {
        let mut object = object.clone();
        let config =
            object.pointer_mut("/spec/conversion/webhook/clientConfig").and_then(Value::as_object_mut);
        let Some(config) = config else { return object };
        let name = config.get("converter").and_then(Value::as_str).map(str::to_owned);
        let Some(running) = self.running.iter().find(|it| name.as_ref() == Some(&it.converter.name)) else {
            return object;
        };
        config.remove("converter");
        let port = running.fake.address().port();
        let path = config.remove("path");
        let path = path.as_ref().and_then(Value::as_str).unwrap_or("/convert");
        config.entry("url").or_insert_with(|| json!(format!("https://127.0.0.1:{port}{path}")));
        let bundle = STANDARD.encode(running.fake.ca_bundle());
        config.entry("caBundle").or_insert_with(|| json!(bundle));
        config.retain(|_, value| !value.is_null());
        object
    }

    /// Switches the converters to their later behavior, and begins to record their calls.
    pub(crate) fn begin(&mut self) {
        for running in &mut self.running {
            if let Some(later) = &running.converter.later {
                running.fake.set_behavior(later.clone());
            }
            running.before = running.fake.journal().len();
        }
    }

    /// Returns the request with the address and the CA of each converter to which a definition in it refers.
    pub(crate) fn named_in(&self, request: Request) -> Request {
        Request { body: request.body.map(|body| self.filled(&body)), ..request }
    }

    /// Adds the first call of each recorded converter to the result of the first request.
    pub(crate) fn add_first_calls(&self, number: usize, seen: &mut Value) {
        let recorded = self.running.iter().filter(|it| it.converter.recorded && number == 0);
        let first = recorded.filter_map(|it| {
            let mut call = sent(&it.fake.journal().into_iter().nth(it.before)?);
            call["converter"] = json!(it.converter.name);
            Some(call)
        });
        let first: Vec<Value> = first.collect();
        if !first.is_empty() {
            seen["conversions"] = Value::Array(first);
        }
    }

    /// Returns the ports of all converters, each with the converter's name.
    pub(crate) fn ports(&self) -> Vec<(u16, String)> {
        self.running.iter().map(|it| (it.fake.address().port(), it.converter.name.clone())).collect()
    }
}
