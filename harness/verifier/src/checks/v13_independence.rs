//! V13: the response depends only on the content of the request.

use std::sync::Arc;

use bytes::Bytes;
use kubernetes_admission::attributes::{Attributes, UserInfo};
use kubernetes_admission::event::Phase;
use kubernetes_types::json;
use serde_json::{Value, json};

use super::v22_envelope::with_exchange;
use super::webhook_response::{WebhookResponse, effect_of};
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::Order;
use crate::environment::Outcome;
use crate::finding_log::NOT_DETERMINISTIC;
use crate::object_probe::ObjectProbe;
use crate::shape;

pub(super) const CHECK: Check = Check {
    id: "V13",
    title: "independence of metadata: the user, managedFields, creationTimestamp, and member order do not \
            change the result",
    severity: Severity::Warning,
    why: "Whether managedFields and creationTimestamp are set depends on the client, on the server's \
          version, and on whether the object is created, applied, or restored. The members of a JSON object \
          have no order. A webhook that depends on them behaves unpredictably. Depending on the user may be \
          intended, but a controller that creates the object for a user then gets a different result; that \
          is reported as a note.",
    help: "Base the result only on the spec, labels, and annotations.",
    source: "Admission Webhook Good Practices; RFC 8259, section 4: an object is an unordered collection",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

const TIME: &str = "2026-01-01T00:00:00Z";
const MANAGED_FIELDS: &str = "/metadata/managedFields";
const CREATION_TIMESTAMP: &str = "/metadata/creationTimestamp";

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let alone = object_probe.alone();
    let expected = object_probe.answered(&alone, object_probe.request).await?;
    let mut managed = object_probe.object().clone();
    let entry = json!({
        "manager": "admit-verify", "operation": "Update", "apiVersion": managed.get("apiVersion"), "time": TIME,
        "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {}}},
    });
    json::set(&mut managed, &["metadata", "managedFields"], json!([entry]));
    let mut dated = object_probe.object().clone();
    json::set(&mut dated, &["metadata", "creationTimestamp"], TIME);
    let user = UserInfo {
        username: "system:serviceaccount:admit-verify:somebody-else".to_owned(),
        uid: "6f3d1d2e-0000-4000-8000-00000000000b".to_owned(),
        groups: vec!["system:serviceaccounts".to_owned(), "system:authenticated".to_owned()],
        ..UserInfo::default()
    };
    let variants = [
        (
            "the user",
            object_probe.shown(Attributes { user, ..object_probe.request.clone() }).await,
            Severity::Note,
        ),
        ("managedFields", object_probe.with_object(managed), Severity::Warning),
        ("creationTimestamp", object_probe.with_object(dated), Severity::Warning),
    ];
    let mut violations = Vec::new();
    for (what, request, severity) in variants {
        let found = object_probe.outcome(&alone, &request).await;
        let steps = [Arc::clone(&expected), Arc::clone(&found)];
        if let Some(violation) = difference(object_probe, what, &expected, &found) {
            violations.push(violation.with_severity(severity).with_steps(steps));
        }
    }
    violations.extend(in_another_order(object_probe).await?);
    if !violations.is_empty() {
        let again = object_probe.outcome_again(&alone, object_probe.request).await;
        if difference(object_probe, "nothing", &expected, &again).is_some() {
            return Err(Skipped::not_checked(NOT_DETERMINISTIC));
        }
    }
    Ok(violations)
}

fn difference(
    object_probe: &ObjectProbe<'_>,
    what: &str,
    expected: &Outcome,
    found: &Outcome,
) -> Option<Violation> {
    if expected.refusal.is_some() != found.refusal.is_some() {
        let (one, other) = (expected.verdict().to_string(), found.verdict().to_string());
        let message = format!("with a different value of {what}, the response differs: {one}; {other}");
        return Some(Violation::new(format!("verdict depends on {what}"), message));
    }
    // A validating webhook changes nothing; the object that it receives may depend on the user through a
    // mutating webhook.
    if object_probe.subject.webhook.phase == Phase::Validating {
        return None;
    }
    let without = |outcome: &Outcome| {
        let mut object = outcome.object.clone()?;
        for field in [MANAGED_FIELDS, CREATION_TIMESTAMP] {
            shape::remove(&mut object, field);
        }
        Some(object)
    };
    let differences = object_probe.differences(&without(expected)?, &without(found)?, Order::Counts);
    if differences.is_empty() {
        return None;
    }
    let message =
        format!("with a different value of {what}, the result differs in {}", super::fields(&differences));
    Some(Violation::new(format!("result depends on {what}"), message).with_differences(differences))
}

/// Sends the same review with the members of each object in reverse order.
async fn in_another_order(object_probe: &ObjectProbe<'_>) -> Result<Option<Violation>, Skipped> {
    const WHAT: &str = "the order of members";
    let webhook_response = WebhookResponse::to_creation(object_probe).await?;
    let Some(exchange) = webhook_response.outcome.exchanges.first() else { return Ok(None) };
    let Ok(review) = serde_json::from_slice::<Value>(&exchange.review) else { return Ok(None) };
    let mut text = String::new();
    write_backwards(&review, &mut text);
    let exchange = object_probe.environment.post(&object_probe.subject.called, Bytes::from(text)).await;
    let found = effect_of(&exchange, webhook_response.object());
    let violation =
        found.difference_from(&webhook_response.effect(), object_probe).map(|(message, differences)| {
            let kind = if differences.is_empty() { "verdict depends on" } else { "result depends on" };
            let message = format!("with {WHAT} reversed, {message}");
            Violation::new(format!("{kind} {WHAT}"), message).with_differences(differences)
        });
    let steps = [Arc::clone(&webhook_response.outcome), with_exchange(&webhook_response.outcome, exchange)];
    Ok(violation.map(|violation| violation.with_steps(steps)))
}

/// Writes `value` as JSON with the members of each object in reverse order.
fn write_backwards(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            text.push('{');
            for (index, (name, member)) in members.iter().rev().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_backwards(member, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_backwards(item, text);
            }
            text.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_reversed_and_list_items_are_not() {
        let value = json!({"a": [1, {"b": "x\"y", "c": null}], "d": true});
        let mut text = String::new();
        write_backwards(&value, &mut text);
        assert_eq!(text, r#"{"d":true,"a":[1,{"c":null,"b":"x\"y"}]}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
