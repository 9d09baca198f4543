//! Validates an object against its schema, with the error messages of kube-openapi.
//!
//! Source: kube-openapi pkg/validation/validate; apiextensions-apiserver pkg/apiserver/validation.

mod alternatives;
mod number;
mod report;
mod scalar;

use std::collections::HashSet;
use std::sync::LazyLock;

use kubernetes_cel::schema::has_format;
use serde_json::{Map, Value};

use self::report::{Failure, Report};
use super::correlation::{Correlation, ItemsByKey};
use super::node::{Additional, Schema, ValueValidation};
use crate::path::Path;
use crate::status::{FieldError, MAX_ERRORS, Unsupported};

/// The part of an object that a request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The whole object.
    Object,
    /// Only the status.
    Status,
}

/// The value validation of a schema that validates only types.
static UNLIMITED: LazyLock<ValueValidation> = LazyLock::new(ValueValidation::default);

/// The maximum total length, in bytes, of all messages.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// Returns the errors of an object or of its status. Parts that did not change since `old` are not reported.
///
/// # Errors
/// Returns [`Unsupported`] if there are more errors than a response can list.
///
/// Source: apiextensions-apiserver pkg/registry/customresource/validator.go, `Validate`, `ValidateUpdate` and
/// `ValidateStatusUpdate`.
/// Rule: SCH-04, SCH-05.
pub(super) fn errors(
    schema: &Schema,
    object: &Value,
    old: Option<&Value>,
    purpose: Purpose,
) -> Result<Vec<FieldError>, Unsupported> {
    let (schema, object, old, prefix) = match purpose {
        Purpose::Object => (schema, object, old, ""),
        Purpose::Status => match (schema.properties.get("status"), object.get("status")) {
            (Some(schema), Some(status)) => {
                (schema, status, old.map(|old| old.get("status").unwrap_or(&Value::Null)), "status")
            }
            _ => return Ok(Vec::new()),
        },
    };
    let correlation = old.map(|old| Correlation { old, new: object, schema });
    let mut validator = Validator { bytes: 0, unsupported: None };
    let report = validator.validate(schema, object, &Path::Root, correlation);
    if let Some(unsupported) = validator.unsupported {
        return Err(unsupported);
    }
    Ok(report.into_field_errors(prefix))
}

/// The state of a validation. An unsupported feature ends the validation.
struct Validator {
    bytes: usize,
    unsupported: Option<Unsupported>,
}

impl Validator {
    /// Validates a value and its parts.
    ///
    /// Source: kube-openapi pkg/validation/validate/schema.go, `Validate`; apiextensions-apiserver
    /// pkg/apiserver/validation/ratcheting.go, `Validate`.
    fn validate<'a>(
        &mut self,
        schema: &'a Schema,
        value: &'a Value,
        path: &Path<'_>,
        correlation: Option<Correlation<'a>>,
    ) -> Report {
        let mut report = Report::default();
        if self.unsupported.is_some() {
            return report;
        }
        let values = schema.values.as_deref().unwrap_or(&UNLIMITED);
        if value.is_null() {
            let types = schema.types();
            if !types.is_empty() && schema.forbids_null() {
                report.add(self, Failure::wrong_type(path, &types.join(","), "null"));
            } else {
                report.matches += 1;
            }
            self.one_of_values(values, value, path, &mut report);
        } else {
            if !schema.types().is_empty() || !values.format.is_empty() {
                match scalar::wrong_type(schema, &values.format, value, path) {
                    Some(failure) => report.add(self, failure),
                    None => report.matches += 1,
                }
                report.matches += 1;
            }
            self.alternatives(values, value, path, &mut report);
            report.matches += 1;
            match value {
                Value::String(text) => self.text(values, text, path, &mut report),
                Value::Number(number) => {
                    number::validate(self, schema, values, number, path, &mut report);
                    report.matches += 1;
                }
                Value::Array(items) => {
                    self.list(schema, values, items, path, correlation, &mut report);
                    report.matches += 1;
                }
                Value::Null | Value::Bool(_) | Value::Object(_) => {}
            }
            self.one_of_values(values, value, path, &mut report);
            report.matches += 1;
            if let Value::Object(members) = value {
                self.object(schema, values, members, path, correlation, &mut report);
                report.matches += 1;
            }
            report.matches += 1;
        }
        if !report.failures.is_empty() && correlation.is_some_and(Correlation::is_unchanged) {
            report.forgive();
        }
        report
    }

    fn one_of_values(
        &mut self,
        values: &ValueValidation,
        value: &Value,
        path: &Path<'_>,
        report: &mut Report,
    ) {
        if !values.values.is_empty() && !values.values.iter().any(|allowed| scalar::is_value(value, allowed))
        {
            report.add(self, Failure::not_a_value(path, value, &values.values));
        }
    }

    fn text(&mut self, values: &ValueValidation, text: &str, path: &Path<'_>, report: &mut Report) {
        if let Some(failure) = scalar::wrong_text(values, text, path) {
            report.add(self, failure);
        }
        report.matches += 1;
        if values.format.is_empty() || !kubernetes_cel::schema::is_known_format(&values.format) {
            return;
        }
        if !has_format(&values.format, text) {
            report.add(self, Failure::wrong_type(path, &values.format, text));
        }
        report.matches += 1;
    }

    /// Validates the items and the length of a list.
    ///
    /// Source: kube-openapi `pkg/validation/validate/slice_validator.go`.
    fn list<'a>(
        &mut self,
        schema: &'a Schema,
        values: &ValueValidation,
        items: &'a [Value],
        path: &Path<'_>,
        correlation: Option<Correlation<'a>>,
        report: &mut Report,
    ) {
        if let Some(of_items) = schema.items.as_deref() {
            let before = correlation.map(|at| (at, ItemsByKey::new(at.old, at.schema)));
            for (index, item) in items.iter().enumerate() {
                let correlation = before.as_ref().and_then(|(at, before)| at.item(before, item));
                let of_item = self.validate(of_items, item, &Path::Item(path, index), correlation);
                report.merge(of_item);
            }
        }
        let size = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(least) = values.min_items.filter(|least| size < *least) {
            report.add(
                self,
                Failure::invalid(path, &size.into(), format_args!("should have at least {least} items")),
            );
        }
        if let Some(most) = values.max_items.filter(|most| size > *most) {
            report.add(self, Failure::too_many(path, size, most, "items"));
        }
        if values.unique_items {
            let mut seen = HashSet::with_capacity(items.len());
            if !items.iter().all(|item| seen.insert(item.to_string())) {
                report.add(self, Failure::invalid(path, &"".into(), "shouldn't contain duplicates"));
            }
        }
        report.matches += 1;
    }

    /// Validates the members of an object.
    ///
    /// Source: kube-openapi `pkg/validation/validate/object_validator.go`.
    fn object<'a>(
        &mut self,
        schema: &'a Schema,
        values: &ValueValidation,
        members: &'a Map<String, Value>,
        path: &Path<'_>,
        correlation: Option<Correlation<'a>>,
        report: &mut Report,
    ) {
        let size = i64::try_from(members.len()).unwrap_or(i64::MAX);
        if let Some(least) = values.min_properties.filter(|least| size < *least) {
            let why = format_args!("should have at least {least} properties");
            report.add(self, Failure::invalid(path, &size.into(), why));
        }
        if let Some(most) = values.max_properties.filter(|most| size > *most) {
            report.add(self, Failure::too_many(path, size, most, "properties"));
        }
        // `apiVersion` and `kind` are converted, so they are not compared.
        let before = |name: &str| {
            let is_type = path.is_empty() && ["apiVersion", "kind"].contains(&name);
            correlation.filter(|_| !is_type)?.member(name)
        };
        match &schema.additional {
            Additional::Flag(false) => {
                for name in members.keys().filter(|name| !schema.properties.contains_key(*name)) {
                    report.add(self, Failure::not_allowed(path, name));
                }
            }
            Additional::Schema(of_values) => {
                for (name, value) in members.iter().filter(|(name, _)| !schema.properties.contains_key(*name))
                {
                    let found = self.validate(of_values, value, &Path::Dotted(path, name), before(name));
                    report.merge(found);
                }
            }
            Additional::Absent | Additional::Flag(true) => {}
        }
        for (name, property) in &schema.properties {
            if let Some(value) = members.get(name) {
                let found = self.validate(property, value, &path.member(name), before(name));
                report.merge(found);
            }
        }
        for name in values.required.iter().filter(|name| !members.contains_key(*name)) {
            report.add(self, Failure::required(&Path::Dotted(path, name)));
        }
    }

    /// Counts the length of a message toward the limit for all messages.
    fn count(&mut self, failure: &Failure) {
        self.bytes = self.bytes.saturating_add(failure.message.len());
        if self.bytes > MAX_MESSAGE_BYTES && self.unsupported.is_none() {
            let what = format!("objects with more than {MAX_ERRORS} errors, or with very long ones");
            self.unsupported = Some(Unsupported { what });
        }
    }
}
