//! Law: each check of `admit verify` can judge any response to any object.
//!
//! The input is a line with the check, the phase (`m` or `v`), the status, and the content type; the object as in
//! [`documents`]; `---`; additional fields of the webhook as JSON; `---`; and the body that the webhook returns for
//! every review, in which `$UID` is replaced with the UID of the review.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::attributes::UserInfo;
use harness::client::NoServices;
use harness::server::ClusterFixture;
use harness::verify::{Check, Environment, Plan, Subject, checks};
use serde_json::{Value, json};

use super::webhook::{Answer, Webhook};
use super::{documents, runtime, with_text};

/// The checks that call a webhook hundreds of times, or that wait for it. They are not tested.
const LONG: [&str; 3] = ["V36", "V41", "V44"];

/// Checks the law for one input.
///
/// # Panics
/// Panics if the law does not hold.
pub(super) fn check(input: &[u8]) {
    with_text(input, |text| {
        let Some((head, rest)) = text.split_once('\n') else { return };
        let words: Vec<&str> = head.splitn(4, ' ').collect();
        let &[check, phase, status, content_type] = words.as_slice() else { return };
        let Some(check) = checks::find(check).filter(|check| !LONG.contains(&check.id)) else { return };
        let [object, fields, body] = documents::parts(rest);
        let Some(object) = documents::object(&object) else { return };
        let fields: Value = serde_json::from_str(&fields).unwrap_or_default();
        let answer = Answer {
            status: status.parse().unwrap_or(200),
            content_type: content_type.to_owned(),
            body: body.into_bytes(),
        };
        runtime::block_on(run(check, phase, object, &fields, answer));
    });
}

async fn run(check: &'static Check, phase: &str, object: Value, fields: &Value, answer: Answer) {
    let webhook = Webhook::of_this_thread().await;
    webhook.answer(answer);
    let mut declaration = json!({
        "name": "w.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 1,
        "clientConfig": {"url": webhook.url, "caBundle": STANDARD.encode(&webhook.ca_bundle)},
        "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}],
    });
    if let (Value::Object(declaration), Value::Object(fields)) = (&mut declaration, fields) {
        let fields =
            fields.iter().filter(|(name, _)| !["clientConfig", "timeoutSeconds"].contains(&name.as_str()));
        declaration.extend(fields.map(|(name, value)| (name.clone(), value.clone())));
    }
    let kind = if phase == "v" { "ValidatingWebhookConfiguration" } else { "MutatingWebhookConfiguration" };
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "c"},
        "webhooks": [declaration],
    });
    let Ok(subjects) = Subject::from_configurations(&[configuration]) else { return };
    let definition = documents::object("CustomResourceDefinition");
    let cluster_fixture = ClusterFixture::new(&definition);
    let environment = Environment::new(Arc::new(NoServices), cluster_fixture, UserInfo::default());
    let mut plan = Plan::new(environment, subjects, [check]);
    plan.jobs = 1;
    let Ok(report) = harness::verify::run(plan, [Ok::<_, ()>(object)].into_iter()).await else { return };
    let report = serde_json::to_string(&report);
    assert!(report.is_ok_and(|report| report.contains(check.id)), "{} is not in its report", check.id);
}
