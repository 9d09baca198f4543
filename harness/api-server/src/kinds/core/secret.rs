//! Implements Secrets.

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::Errors;
use crate::kinds::kind::Kind;
use kubernetes_types::json::keep;
use serde_json::Value;

/// The behavior of Secrets.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "secrets",
    kind: "Secret",
    set_defaults: Some(crate::kinds::defaulting::core::secret),
    through_internal: Some(crate::kinds::defaulting::internal::secret),
    validate: validate,
    warn: crate::kinds::validation::warnings::secret::secret,
    cells: Some(crate::kinds::tables::cluster::secret),
    prepare_update: keep_type,
    selectable_fields: Some(&["metadata.name", "metadata.namespace", "type"]),
    ..Kind::PLAIN
};

fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    crate::kinds::validation::config_data::secret(errors, object, change);
    if crate::kinds::validation::config_data::has_unreadable_docker_config(object) {
        errors.cannot_validate("the message for a Secret whose Docker configuration is not a JSON object");
    }
}

/// Keeps the type in an update that does not set it.
fn keep_type(object: &mut Value, old: &Value) {
    if object.get("type").and_then(Value::as_str).is_none_or(str::is_empty) {
        keep(object, old, "type");
    }
}
