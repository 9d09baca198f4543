//! Law: any configuration is read or rejected with a message.
//!
//! Defaulting is idempotent, valid configurations can be read, and the static checks report problems as messages.
//!
//! The input is the configuration as in [`documents`] and, after `---`, another configuration that replaces it.

use harness::config::{
    ConfigError, check_types, set_defaults, stored_webhooks, update_warnings, upgraded, v1_differences,
    v1_errors, validate, validate_update, warnings, webhooks,
};
use harness::json::set;
use harness::verify::lint::lint;
use harness::verify::{Check, Subject, checks};
use jiff::Timestamp;
use serde_json::Value;

use super::{documents, with_text};

const GROUP: &str = "admissionregistration.k8s.io/v1";
const KINDS: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Checks the law for one input.
///
/// # Panics
/// Panics if the law does not hold.
pub(super) fn check(input: &[u8]) {
    with_text(input, |text| {
        let [configuration, other] = documents::parts(text);
        let configuration = documents::object(&configuration).filter(is_configuration);
        let Some(configuration) = configuration else { return };
        let settled = check_one(configuration);
        if let (Some(old), Some(new)) = (settled, documents::object(&other).filter(is_configuration))
            && let Some(new) = check_one(new)
        {
            for error in validate_update(&new, &old) {
                assert!(!error.to_string().is_empty());
            }
        }
    });
}

/// Checks the same configuration in v1beta1: it is read completely, and manifest checks report problems as messages.
fn check_old(configuration: &Value) {
    let mut old = configuration.clone();
    set(&mut old, &["apiVersion"], "admissionregistration.k8s.io/v1beta1");
    let upgraded = upgraded(&old).unwrap_or_default();
    let mut again = upgraded.clone();
    set_defaults(&mut again);
    assert_eq!(again, upgraded, "defaults are set once");
    for differing in v1_differences(&old) {
        assert_ne!(differing.v1beta1, differing.v1, "{old}");
    }
    drop(v1_errors(&old));
    let checks: Vec<&Check> = checks::STATIC.iter().map(|(check, _)| *check).collect();
    let linted = lint(&[configuration.clone(), old], &checks, Timestamp::UNIX_EPOCH, None);
    for found in linted.findings {
        assert!(found.position < 2 && !found.message.is_empty(), "{found:?}");
    }
}

fn is_configuration(object: &Value) -> bool {
    let is_known = object.get("kind").is_some_and(|kind| KINDS.iter().any(|known| kind == known));
    is_known && object.get("apiVersion").is_some_and(|version| version == GROUP)
}

/// Checks a configuration, and returns it with its defaults; `None` if a field has a wrong type.
fn check_one(mut configuration: Value) -> Option<Value> {
    // Input that does not go through the server may contain anything.
    for read in [webhooks, stored_webhooks] {
        if let Err(ConfigError::Field { field, what, .. }) = read(&configuration) {
            assert!(!field.is_empty() && !what.is_empty(), "{configuration}");
        }
    }
    check_old(&configuration);
    check_types(&configuration).ok()?;
    set_defaults(&mut configuration);
    let mut again = configuration.clone();
    set_defaults(&mut again);
    assert_eq!(again, configuration, "defaults are set once");
    let text = configuration.to_string();
    let read: Value = serde_json::from_str(&text).unwrap_or_default();
    assert_eq!(read, configuration, "JSON and back");
    let errors = validate(&configuration);
    assert_eq!(errors, validate(&read), "the same is wrong each time");
    for warning in [warnings(&configuration), update_warnings(&configuration)].concat() {
        assert!(!warning.is_empty());
    }
    if errors.is_empty() {
        match stored_webhooks(&configuration) {
            Ok(webhooks) => {
                let declared = configuration.get("webhooks").and_then(Value::as_array).map_or(0, Vec::len);
                assert_eq!(webhooks.len(), declared);
            }
            Err(ConfigError::Unsupported(_)) => {}
            Err(error) => panic!("it is valid, and cannot be read: {error}\n{configuration:#}"),
        }
        if let Ok(subjects) = Subject::from_configurations(std::slice::from_ref(&configuration)) {
            for subject in subjects {
                assert!(!subject.name().is_empty() && subject.declaration().is_object());
                drop((subject.server(), subject.caveat()));
            }
        }
    }
    Some(configuration)
}
