//! V13: what a webhook does follows from what is asked for.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::said::{Said, effect_of};
use super::v22_envelope::retold;
use crate::attributes::{Attributes, UserInfo};
use crate::event::Phase;
use crate::json;
use crate::verify::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::verify::comparison::Order;
use crate::verify::laboratory::Outcome;
use crate::verify::ledger::UNSTEADY;
use crate::verify::shape;
use crate::verify::trial::Trial;

pub(super) const CHECK: Check = Check {
    id: "V13",
    title: "independent: the user, managedFields, creationTimestamp and the order of members make no difference",
    severity: Severity::Warning,
    why: "managedFields and creationTimestamp are there or not according to the client, the server's version and \
          whether the object is created, applied or restored; the members of a JSON object have no order. A webhook \
          that does something else because of them does it at random. Looking at the user may be meant, but then a \
          controller that creates the object on somebody's behalf gets another one: it is told as a note.",
    source: "Admission Webhook Good Practices; RFC 8259, section 4: an object is an unordered collection",
    audience: Audience::All,
    probe: Probe::Object(|trial| Box::pin(run(trial))),
};

const TIME: &str = "2026-01-01T00:00:00Z";
const MANAGED_FIELDS: &str = "/metadata/managedFields";
const CREATION_TIMESTAMP: &str = "/metadata/creationTimestamp";

async fn run(trial: &Trial<'_>) -> Observed {
    let alone = trial.alone();
    let expected = trial.answered(&alone, trial.request).await?;
    let mut managed = trial.object().clone();
    let entry = json!({
        "manager": "admit-verify", "operation": "Update", "apiVersion": managed.get("apiVersion"), "time": TIME,
        "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {}}},
    });
    json::set(&mut managed, &["metadata", "managedFields"], json!([entry]));
    let mut dated = trial.object().clone();
    json::set(&mut dated, &["metadata", "creationTimestamp"], TIME);
    let user = UserInfo {
        username: "system:serviceaccount:admit-verify:somebody-else".to_owned(),
        uid: "6f3d1d2e-0000-4000-8000-00000000000b".to_owned(),
        groups: vec!["system:serviceaccounts".to_owned(), "system:authenticated".to_owned()],
        ..UserInfo::default()
    };
    let variants = [
        ("the user", trial.shown(Attributes { user, ..trial.request.clone() }).await, Severity::Note),
        ("managedFields", trial.with_object(managed), Severity::Warning),
        ("creationTimestamp", trial.with_object(dated), Severity::Warning),
    ];
    let mut violations = Vec::new();
    for (what, request, severity) in variants {
        let found = trial.outcome(&alone, &request).await;
        let steps = [Arc::clone(&expected), Arc::clone(&found)];
        if let Some(violation) = departure(trial, what, &expected, &found) {
            violations.push(violation.with_severity(severity).with_steps(steps));
        }
    }
    violations.extend(in_another_order(trial).await?);
    if !violations.is_empty() {
        let again = trial.outcome_anew(&alone, trial.request).await;
        if departure(trial, "nothing", &expected, &again).is_some() {
            return Err(Obstacle::not_checked(UNSTEADY));
        }
    }
    Ok(violations)
}

fn departure(trial: &Trial<'_>, what: &str, expected: &Outcome, found: &Outcome) -> Option<Violation> {
    if expected.refusal.is_some() != found.refusal.is_some() {
        let (one, other) = (expected.verdict().to_string(), found.verdict().to_string());
        let message = format!("with another value of {what} the answer is another one: {one}; {other}");
        return Some(Violation::new(format!("its answer depends on {what}"), message));
    }
    // A validating webhook makes nothing; what it sees may depend on the user, by a mutating one.
    if trial.subject.webhook.phase == Phase::Validating {
        return None;
    }
    let without = |outcome: &Outcome| {
        let mut object = outcome.object.clone()?;
        for field in [MANAGED_FIELDS, CREATION_TIMESTAMP] {
            shape::remove(&mut object, field);
        }
        Some(object)
    };
    let differences = trial.differences(&without(expected)?, &without(found)?, Order::Counts);
    if differences.is_empty() {
        return None;
    }
    let message = format!("with another value of {what} it makes another {}", super::fields(&differences));
    Some(Violation::new(format!("what it does depends on {what}"), message).with_differences(differences))
}

/// Sends the same review with the members of each object the other way round.
async fn in_another_order(trial: &Trial<'_>) -> Result<Option<Violation>, Obstacle> {
    const WHAT: &str = "the order of members";
    let said = Said::of(trial).await?;
    let Some(exchange) = said.outcome.exchanges.first() else { return Ok(None) };
    let Ok(review) = serde_json::from_slice::<Value>(&exchange.review) else { return Ok(None) };
    let mut text = String::new();
    write_backwards(&review, &mut text);
    let exchange = trial.laboratory.post(&trial.subject.called, Bytes::from(text)).await;
    let found = effect_of(&exchange, said.object());
    let violation = found.departure(&said.effect(), trial).map(|(message, differences)| {
        let kind = if differences.is_empty() { "its answer depends on" } else { "what it does depends on" };
        let message = format!("with {WHAT} reversed {message}");
        Violation::new(format!("{kind} {WHAT}"), message).with_differences(differences)
    });
    let steps = [Arc::clone(&said.outcome), retold(&said.outcome, exchange)];
    Ok(violation.map(|violation| violation.with_steps(steps)))
}

/// `value` as JSON, the last member of each object first.
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
    fn members_are_turned_round_and_items_are_not() {
        let value = json!({"a": [1, {"b": "x\"y", "c": null}], "d": true});
        let mut text = String::new();
        write_backwards(&value, &mut text);
        assert_eq!(text, r#"{"d":true,"a":[1,{"c":null,"b":"x\"y"}]}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
