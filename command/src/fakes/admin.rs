//! Calls the admin endpoint of deployed fakes through the API server's proxy to their Service.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::json::at;
use http::Method;
use serde_json::Value;

use super::api::{Answer, Api, Kind};
use super::manifests::TOKEN;
use super::names::{FakesNamespace, NAME};
use crate::Failure;

/// A client for the admin endpoint of deployed fakes.
#[derive(Clone)]
pub(crate) struct Admin {
    api: Api,
    proxy: String,
    token: String,
}

impl Admin {
    /// Creates a client for the endpoint in `namespace`.
    pub(crate) fn new(api: &Api, namespace: &FakesNamespace, token: &str) -> Self {
        let service = Kind::SERVICE.path(namespace.as_str(), &format!("https:{NAME}:admin"));
        Self { api: api.clone(), proxy: format!("{service}/proxy"), token: token.to_owned() }
    }

    /// Creates a client for the fakes that are deployed in `namespace`.
    ///
    /// # Errors
    /// Returns an error if no fakes are deployed there, or their Secret cannot be read.
    pub(crate) async fn find_deployed(api: &Api, namespace: &FakesNamespace) -> Result<Self, Failure> {
        let secret = api.get(&Kind::SECRET.path(namespace.as_str(), NAME)).await?;
        let Some(secret) = secret else {
            let namespace = namespace.as_str();
            return Err(Failure::environment(format!(
                "no fakes are deployed in the namespace `{namespace}`: run `admit fakes deploy`, or use --namespace"
            )));
        };
        let token = secret_text(&secret, TOKEN).ok_or_else(|| {
            Failure::environment(format!(
                "missing `{TOKEN}` in the Secret {NAME}: run `admit fakes deploy` to create it"
            ))
        })?;
        Ok(Self::new(api, namespace, &token))
    }

    /// Checks whether the fakes respond. If they do not, returns the API server's error message.
    ///
    /// # Errors
    /// Returns an error if the API server does not respond.
    pub(crate) async fn is_healthy(&self) -> Result<Result<(), String>, Failure> {
        let answer = self.send(Method::GET, "/healthz", Vec::new()).await?;
        Ok(if answer.code.is_success() { Ok(()) } else { Err(answer.message()) })
    }

    /// Returns the `caBundle` of each fake by name.
    ///
    /// Some certificates have a separate CA, which the fakes generate at each start.
    ///
    /// # Errors
    /// Returns an error if the API server or the fakes do not respond.
    pub(crate) async fn ca_bundles(&self) -> Result<BTreeMap<String, String>, Failure> {
        let answer = self.call(Method::GET, "/fakes", Vec::new()).await?;
        let fakes = at(&answer, &["fakes"]).as_array().map_or(&[][..], Vec::as_slice);
        let text = |fake: &Value, field: &str| fake[field].as_str().map(str::to_owned);
        Ok(fakes.iter().filter_map(|fake| Some((text(fake, "name")?, text(fake, "caBundle")?))).collect())
    }

    /// Returns the journal; `query` is passed to the admin endpoint, for example `fake=NAME&wait=2`.
    ///
    /// # Errors
    /// Returns an error if the API server or the fakes do not respond.
    pub(crate) async fn journal(&self, query: &str) -> Result<Value, Failure> {
        self.call(Method::GET, &format!("/journal?{query}"), Vec::new()).await
    }

    /// Adds or replaces a fake and returns its description.
    ///
    /// # Errors
    /// Returns an error if the API server does not respond, or the fakes reject the request.
    pub(crate) async fn put(&self, name: &str, entry: &Value) -> Result<Value, Failure> {
        self.call(Method::PUT, &format!("/fakes/{name}"), entry.to_string().into_bytes()).await
    }

    /// Removes a fake.
    ///
    /// # Errors
    /// Returns an error if the API server does not respond, or the fake does not exist.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), Failure> {
        self.call(Method::DELETE, &format!("/fakes/{name}"), Vec::new()).await.map(|_| ())
    }

    /// Resets each fake in `fakes` and clears the journal.
    ///
    /// # Errors
    /// Returns an error if the API server or the fakes do not respond.
    pub(crate) async fn reset(&self, fakes: impl IntoIterator<Item = &str>) -> Result<(), Failure> {
        for fake in fakes {
            self.call(Method::POST, &format!("/fakes/{fake}/reset"), Vec::new()).await?;
        }
        self.call(Method::DELETE, "/journal", Vec::new()).await.map(|_| ())
    }

    async fn call(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Value, Failure> {
        let answer = self.send(method.clone(), path, body).await?;
        if answer.code.is_success() {
            return Ok(answer.body);
        }
        let message = answer.message();
        Err(Failure::environment(format!(
            "admin endpoint of the fakes: {method} {path}: {} {message}",
            answer.code
        )))
    }

    async fn send(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Answer, Failure> {
        // The proxy removes the Authorization header.
        let headers = [("x-admit-token", self.token.as_str())];
        self.api.send(method, &format!("{}{path}", self.proxy), &headers, body).await
    }
}

/// Returns a value of a Secret as a string, or `None` if it is missing, empty, or not UTF-8.
pub(crate) fn secret_text(secret: &Value, key: &str) -> Option<String> {
    let bytes = STANDARD.decode(at(secret, &["data", key]).as_str()?).ok()?;
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}
