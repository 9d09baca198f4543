//! Implements `LimitRange` objects.

use crate::apimachinery::metadata;
use crate::kinds::kind::Kind;
use serde_json::Value;

/// The behavior of `LimitRange` objects.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "limitranges",
    kind: "LimitRange",
    set_defaults: Some(crate::kinds::defaulting::core::limit_range),
    prepare_create: set_name,
    is_created_by_update: true,
    validate: crate::kinds::validation::quotas::limit_range,
    has_default_columns: true,
    ..Kind::PLAIN
};

fn set_name(object: &mut Value) {
    if metadata::text(object, "name").is_empty() {
        metadata::set(object, "name", uuid::Uuid::new_v4().to_string().into());
    }
}
