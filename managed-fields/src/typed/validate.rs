//! Validates values against their types.

use std::collections::BTreeSet;

use serde_json::Value;

use super::errors::{Findings, ValidationErrors};
use super::items::Items;
use super::{NO_TYPE, deduced};
use crate::go;
use crate::path::PathElement;
use crate::schema::{ListType, MapType, Relation, Scalar, Schema, Type};

/// Whether list items may have duplicate keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "they may or may not")]
pub enum Duplicates {
    /// Duplicate keys are allowed, as in stored objects.
    Allowed,
    /// Duplicate keys are rejected, as in applied objects.
    Refused,
}

/// Validates that `value` is of type `of`.
///
/// If several members are undeclared, only the alphabetically first is reported; upstream reports a random one.
///
/// # Errors
/// Returns all validation errors.
///
/// Source: structured-merge-diff typed/validate.go.
pub fn validate<T: Schema>(
    value: &Value,
    of: Type<T>,
    duplicates: Duplicates,
) -> Result<(), ValidationErrors> {
    let mut findings = Findings::default();
    visit(value, of, duplicates, &mut findings);
    findings.into_result()
}

fn visit<T: Schema>(value: &Value, of: Type<T>, duplicates: Duplicates, findings: &mut Findings) {
    let atom = deduced(of.atom(), Some(value));
    if let Some(map) = atom.map {
        visit_map(value, of, map, duplicates, findings);
    } else if let Some(scalar) = atom.scalar {
        if let Some(error) = scalar_error(scalar, Some(value), "") {
            findings.push(error);
        }
    } else if let Some(list) = atom.list {
        visit_list(value, of, list, duplicates, findings);
    } else {
        findings.push(NO_TYPE);
    }
}

fn visit_map<T: Schema>(
    value: &Value,
    of: Type<T>,
    map: MapType<T>,
    duplicates: Duplicates,
    findings: &mut Findings,
) {
    let members = match value {
        Value::Object(members) => members,
        Value::Null => return,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return findings.push(format!("expected map, got {}", go::pointer(value)));
        }
    };
    for (name, value) in members {
        let element = PathElement::field(name);
        match of.field(name).or(map.element) {
            Some(of) => findings.below(&element, |findings| visit(value, of, duplicates, findings)),
            None => {
                return findings.below(&element, |findings| findings.push("field not declared in schema"));
            }
        }
    }
}

fn visit_list<T: Schema>(
    value: &Value,
    of: Type<T>,
    list: ListType<T>,
    duplicates: Duplicates,
    findings: &mut Findings,
) {
    let items = match value {
        Value::Array(items) => items,
        Value::Null => return,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            return findings.push(format!("expected list, got {}", go::pointer(value)));
        }
    };
    let path = Items::new(&of, list);
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let element = if list.relation == Relation::Atomic {
            PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX))
        } else {
            match path.element(item) {
                Ok(element) => element,
                // If an item is invalid, no more errors are reported for the list.
                Err(error) => return findings.push(format!("element {index}: {error}")),
            }
        };
        if list.relation != Relation::Atomic
            && !seen.insert(element.clone())
            && duplicates == Duplicates::Refused
        {
            findings.push(format!("duplicate entries for key {element}"));
        }
        findings.below(&element, |findings| visit(item, list.element, duplicates, findings));
    }
}

/// Returns an error message that starts with `prefix`, or `None` if the value matches the scalar type.
///
/// Source: structured-merge-diff typed/validate.go, `validateScalar`.
pub(super) fn scalar_error(scalar: Scalar, value: Option<&Value>, prefix: &str) -> Option<String> {
    let value = value.filter(|value| !value.is_null())?;
    let error = match scalar {
        Scalar::Numeric if !value.is_number() => {
            format!("expected numeric (int or float), got {}", go::type_name(value))
        }
        Scalar::String if !value.is_string() => {
            format!("expected string, got {}", go::syntax_of_pointer(value))
        }
        Scalar::Boolean if !value.is_boolean() => format!("expected boolean, got {}", go::pointer(value)),
        Scalar::Untyped if value.is_array() || value.is_object() => {
            format!("expected any scalar, got {}", go::pointer(value))
        }
        Scalar::Numeric | Scalar::String | Scalar::Boolean | Scalar::Untyped => return None,
    };
    Some(format!("{prefix}{error}"))
}
