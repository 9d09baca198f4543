//! Finds the fields of a built-in kind that a field selector can select.

use crate::kinds::discovery::Resource;
use crate::kinds::table;

/// The JSON pointer to the component that reported an Event of the core group.
pub(crate) const EVENT_SOURCE: &str = "/source/component";

/// Returns the value that comparisons use for an absent field.
pub(crate) fn unset(pointer: &str) -> &'static str {
    match pointer {
        "/spec/unschedulable" | "/spec/hostNetwork" => "false",
        "/status/replicas" | "/status/succeeded" => "0",
        _ => "",
    }
}

/// Returns the selectable fields; `None` if only the name and the namespace can be selected.
///
/// Rule: KND-12, LST-11.
pub(crate) fn selectable(resource: &Resource) -> Option<&'static [&'static str]> {
    table::of(resource).selectable_fields
}

/// Returns the JSON pointer to a selected field in the stored object. Events are stored as Events of the core group.
pub(crate) fn pointer(resource: &Resource, path: &str) -> String {
    let path = (table::of(resource).stored_field)(path).unwrap_or_else(|| path.to_owned());
    format!("/{}", path.replace('.', "/"))
}
