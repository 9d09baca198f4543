//! Provides what both kinds of webhook configurations share.

use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, items, name, row};
use crate::kinds::common::warnings::Warnings;

/// Warns about a webhook configuration.
pub(crate) fn warn_configuration(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    let mut found = kubernetes_admission::config::warnings(object);
    if old.is_some() {
        found.extend(kubernetes_admission::config::update_warnings(object));
    }
    for warning in found {
        warnings.push(warning);
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), items(object, &["webhooks"]).len(), age_of(object, context)]
}
