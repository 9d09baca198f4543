//! Removes the fields that belong to feature gates that are off by default.
//!
//! Mutating webhooks receive these fields, but the server does not store them.
//!
//! In an update, upstream keeps a disabled field that was stored before. This server never stores disabled fields.

use serde_json::Value;

/// The path of a field: member names, and `*` for each item of a list or each value of a map.
pub(crate) type Path = &'static [&'static str];

pub(crate) fn drop_all(owner: Option<&mut Value>, paths: &[Path]) {
    let Some(owner) = owner else { return };
    for path in paths {
        drop_at(owner, path);
    }
}

pub(crate) fn drop_at(owner: &mut Value, path: &[&str]) {
    match path {
        [] => {}
        [field] => {
            if let Some(members) = owner.as_object_mut() {
                members.remove(*field);
            }
        }
        ["*", rest @ ..] => match owner {
            Value::Array(items) => items.iter_mut().for_each(|item| drop_at(item, rest)),
            Value::Object(members) => members.values_mut().for_each(|member| drop_at(member, rest)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        },
        [field, rest @ ..] => {
            if let Some(member) = owner.get_mut(*field) {
                drop_at(member, rest);
            }
        }
    }
}
