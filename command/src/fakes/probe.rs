//! Checks that every webhook responds through the API server.
//!
//! Probe configurations have the same `clientConfig`s as the webhooks. Each matches a single ConfigMap, which is
//! created in a dry run in the fakes' namespace. The API server resolves the Service, connects, and calls the fake as
//! it will for the webhook.
//!
//! An API server loads configurations in the order in which they were stored. Requests that match a marker
//! configuration fail visibly. Once the API server uses the marker, it also uses all configurations that were applied
//! before.

use std::collections::BTreeSet;

use fake_webhooks::{Certificate, Connection, HttpVersions, PlannedFake, Transport};
use futures::future::try_join_all;
use harness::json::{at, text};
use http::Method;
use serde_json::json;

use super::admin::Admin;
use super::api::{Answer, Api, Kind};
use super::configurations::{Configurations, probe_label};
use super::names::{FakesNamespace, PROBE_LABEL};
use super::progress::{Look, Progress};
use crate::Failure;

/// The error messages of an API server that cannot connect to a fake.
const NOT_REACHED: [&str; 6] = [
    "dial tcp",
    "no endpoints available",
    "no service port",
    "\" not found",
    "no such host",
    "no route to host",
];

/// The error message for a port without a listener.
const REFUSED: &str = "connect: connection refused";

/// The probes of one deployment. They check its webhooks and configurations.
pub(crate) struct Probes<'a> {
    api: &'a Api,
    admin: &'a Admin,
    configurations: Configurations<'a>,
    namespace: &'a FakesNamespace,
    /// The unique ID of this run. The names of the probes contain it.
    run: String,
}

impl<'a> Probes<'a> {
    pub(crate) fn new(api: &'a Api, admin: &'a Admin, configurations: Configurations<'a>) -> Self {
        let run = uuid::Uuid::new_v4().simple().to_string().chars().take(8).collect();
        Self { api, admin, configurations, namespace: configurations.namespace, run }
    }

    /// Waits until every webhook has been called or has failed as expected.
    ///
    /// # Errors
    /// Returns an error if a webhook was not reached before the timeout. The error includes the message of the API
    /// server.
    pub(crate) async fn wait_for_webhooks(&self, progress: &Progress) -> Result<(), Failure> {
        for configuration in self.configurations.for_probes(&self.run) {
            self.api.apply(&configuration).await?;
        }
        let fakes: Vec<(usize, &PlannedFake)> = self.configurations.plan.fakes().enumerate().collect();
        let mut answered = BTreeSet::new();
        let waited = progress.until(async || {
            let open: Vec<_> = fakes.iter().filter(|(index, _)| !answered.contains(index)).collect();
            let probes = open.iter().map(|(index, _)| self.probe(probe_label(&self.run, *index)));
            let answers = try_join_all(probes).await?;
            let journal = self.received_probes().await?;
            let mut missing = Vec::new();
            for ((index, fake), answer) in open.into_iter().zip(&answers) {
                if journal.contains(&probe_label(&self.run, *index)) || fails_as_expected(fake, answer) {
                    answered.insert(*index);
                } else {
                    missing.push(format!("{} ({})", fake.entry.name, shortened(answer)));
                }
            }
            Ok(match missing.as_slice() {
                [] => Look::Done(()),
                [first, ..] => {
                    let of = fakes.len();
                    Look::Missing(format!("{} of {of} webhooks to respond: {first}", missing.len()))
                }
            })
        });
        waited.await
    }

    /// Waits until the API server uses all configurations that were applied before this call.
    ///
    /// # Errors
    /// Returns an error if the API server does not use the configurations before the timeout.
    pub(crate) async fn wait_for_configurations(&self, progress: &Progress) -> Result<(), Failure> {
        for configuration in self.configurations.for_markers(&self.run) {
            self.api.apply(&configuration).await?;
            let label = probe_label(&self.run, text(&configuration, &["kind"]));
            let marker = configuration.pointer("/webhooks/0/name").and_then(serde_json::Value::as_str);
            let marker = marker.unwrap_or_default().to_owned();
            let waited = progress.until(async || {
                let answer = self.probe(label.clone()).await?;
                let is_used = answer.message().contains(&calling(&marker));
                let missing = || Look::Missing("the API server to apply the configurations".to_owned());
                Ok(if is_used { Look::Done(()) } else { missing() })
            });
            waited.await?;
        }
        Ok(())
    }

    /// Deletes the probe configurations.
    ///
    /// # Errors
    /// Returns an error if the API server does not respond or rejects the request.
    pub(crate) async fn remove(&self) -> Result<(), Failure> {
        for kind in [Kind::MUTATING, Kind::VALIDATING] {
            self.api.delete(&kind.path("", &self.namespace.probe_configuration())).await?;
        }
        Ok(())
    }

    /// Creates a ConfigMap in a dry run. The fakes' journal identifies the call by its label.
    async fn probe(&self, label: String) -> Result<Answer, Failure> {
        let path = format!("{}?dryRun=All", Kind::CONFIG_MAP.collection(self.namespace.as_str()));
        let probe = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": label, "labels": {PROBE_LABEL: label}},
        });
        let content_type = [("content-type", "application/json")];
        self.api.send(Method::POST, &path, &content_type, probe.to_string().into_bytes()).await
    }

    /// Returns the names of the probes that the fakes received.
    async fn received_probes(&self) -> Result<BTreeSet<String>, Failure> {
        let journal = self.admin.journal(&format!("namespace={}", self.namespace.as_str())).await?;
        let entries = at(&journal, &["entries"]).as_array().map_or(&[][..], Vec::as_slice);
        let names = entries.iter().filter_map(|entry| at(entry, &["review", "request", "name"]).as_str());
        Ok(names.map(str::to_owned).collect())
    }
}

/// Returns whether a call failed in the way that is expected for a fake that cannot receive requests.
fn fails_as_expected(fake: &PlannedFake, answer: &Answer) -> bool {
    let PlannedFake { entry, .. } = fake;
    let message = answer.message();
    if !message.contains(&calling(&entry.name)) {
        return false;
    }
    if !entry.client_config.is_empty() {
        return true;
    }
    if entry.transport.connection == Connection::Refused {
        return message.contains(REFUSED);
    }
    cannot_be_called(entry.transport) && !NOT_REACHED.iter().any(|words| message.contains(words))
}

/// Returns whether kube-apiserver can fail before it sends a request over this transport.
fn cannot_be_called(transport: Transport) -> bool {
    let is_refused = |certificate| match certificate {
        Certificate::Valid => false,
        Certificate::Defective(defect) => !defect.is_accepted(),
    };
    let is_spoken = matches!(transport.connection, Connection::Accepted | Connection::TlsOrPlainHttp)
        && transport.http != HttpVersions::Http2;
    !is_spoken || is_refused(transport.certificate) || transport.rotate.is_some_and(is_refused)
}

/// Returns the start of kube-apiserver's message about a failed call to `webhook`.
///
/// Source: apiserver pkg/admission/plugin/webhook/errors/statuserror.go and `webhook.ErrCallingWebhook`.
fn calling(webhook: &str) -> String {
    format!("failed calling webhook {webhook:?}")
}

fn shortened(answer: &Answer) -> String {
    if answer.code.is_success() { "not called yet".to_owned() } else { answer.message() }
}

#[cfg(test)]
mod tests {
    use fake_webhooks::{FakesFile, Plan};

    use super::*;

    /// Checks whether `said` is an expected failure of a webhook with the given fields.
    #[track_caller]
    fn check(fields: &str, said: &str, expected: bool) {
        let text = format!("version: 1\nwebhooks:\n- {{name: a, type: mutating, behavior: allow{fields}}}\n");
        let plan = Plan::new(&[FakesFile::parse(&text, "fakes.yaml").unwrap()]).unwrap();
        let message = format!("Internal error occurred: {said}");
        let answer =
            Answer { code: http::StatusCode::INTERNAL_SERVER_ERROR, body: json!({"message": message}) };
        assert_eq!(fails_as_expected(plan.fakes().next().unwrap(), &answer), expected, "{fields}: {said}");
    }

    #[test]
    fn webhook_that_cannot_be_called_must_fail_as_expected() {
        let failed = |why: &str| {
            format!(
                "failed calling webhook \"a.fakes.local\": failed to call webhook: Post \"https://a\": {why}"
            )
        };
        let expired = failed("tls: failed to verify certificate: x509: certificate has expired");
        let closed = failed("dial tcp 10.96.17.37:8443: connect: connection refused");
        check("", &expired, false);
        check(", certificate: expired", &expired, true);
        check(", certificate: expired", &closed, false);
        check(", certificate: expired", &failed("service \"admit-fakes\" not found"), false);
        check(", certificate: expired", &failed("no service port 8443 found"), false);
        check(", certificate: expired", "failed calling webhook \"other.fakes.local\": x509", false);
        check("", &closed, false);
        check(", connection: refused", &closed, true);
        check(", connection: refused", &failed("no endpoints available for service \"admit-fakes\""), false);
        check(", connection: refused", &failed("dial tcp 10.96.17.37:8443: i/o timeout"), false);
        let reset = failed("read tcp 10.0.0.1:40000->10.96.17.37:8443: read: connection reset by peer");
        let not_tls = failed("http: server gave HTTP response to HTTPS client");
        for (connection, said) in [
            ("reset", &reset),
            ("closed", &failed("EOF")),
            ("silent", &failed("context deadline exceeded")),
            ("plain-http", &not_tls),
            ("tls-1.1", &failed("remote error: tls: protocol version not supported")),
            ("client-certificate", &failed("remote error: tls: certificate required")),
        ] {
            check(&format!(", connection: {connection}"), said, true);
            check(&format!(", connection: {connection}"), &closed, false);
        }
        check(", http: http1", &reset, false);
        check(", certificate: intermediate", &failed("x509: certificate signed by unknown authority"), false);
        check(", clientConfig: {service: {name: none}}", &failed("service \"none\" not found"), true);
    }
}
