//! Prunes, defaults, and validates custom resources according to the structural schema of their definition.
//!
//! A [`Schema`] is parsed once, when its definition is stored. All other functions here take a schema and an object.
//!
//! Source: apiextensions-apiserver pkg/apiserver/schema and pkg/apiserver/validation; kube-openapi pkg/validation.

mod apply;
mod coerce;
mod correlation;
mod defaulting;
pub mod definition;
mod list_types;
mod node;
mod numbers;
mod parse;
mod pruning;
mod rules;
mod validation;

use std::sync::Arc;

use serde_json::Value;

use kubernetes_managed_fields as managed_fields;

pub use self::apply::{AppliedType, CustomType};
use self::coerce::coerce;
use self::defaulting::{prune_nulls, set_defaults};
use self::node::Schema;
use self::pruning::prune;
use self::rules::Rules;
pub use self::rules::{Judgment, Notation, ResolvedPath, resolve};
pub use self::validation::Purpose;
use crate::status::{FieldError, Unsupported};

/// The compiled schema of one version of a definition.
#[derive(Debug)]
pub struct Compiled {
    schema: Schema,
    rules: Option<Rules>,
}

impl Compiled {
    /// Compiles the `openAPIV3Schema` of one version.
    ///
    /// # Errors
    /// Returns [`Unsupported`] if the schema uses a feature that admit does not support.
    pub fn new(schema: &Value) -> Result<Arc<Self>, Unsupported> {
        let mut parsed = parse::parse(schema)?;
        defaulting::prune_defaults(&mut parsed);
        let rules = rules::rules(schema)?;
        Ok(Arc::new(Self { schema: parsed, rules }))
    }

    /// Returns the type of the objects for server-side apply and `metadata.managedFields`.
    ///
    /// Rule: APY-18.
    pub fn applied_type(&self) -> managed_fields::Type<AppliedType<'_>> {
        AppliedType::for_root(&self.schema)
    }

    /// Normalizes an object as the decoder does, except for its own metadata. Returns the paths of unknown fields.
    ///
    /// The paths are in the order in which kube-apiserver reports them. Unknown fields and nulls are removed, and the
    /// metadata of embedded objects is normalized. If `lenient`, as for objects from storage, invalid metadata is
    /// removed.
    ///
    /// # Errors
    /// Returns [`FieldError`] for invalid metadata of an embedded object, unless `lenient`.
    ///
    /// Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`, `unstructuredSchemaCoercer.apply`.
    pub fn decode(&self, object: &mut Value, lenient: bool) -> Result<Vec<String>, FieldError> {
        let mut unknown = prune(object, &self.schema);
        prune_nulls(object, &self.schema);
        unknown.extend(coerce(object, &self.schema, lenient)?);
        Ok(unknown)
    }

    /// Returns the names of the fields that the schema describes for the value at `path`, such as `spec.parts[0]`.
    pub fn names(&self, path: &str) -> Vec<&str> {
        let names = self.schema.at(path).into_iter().flat_map(|schema| schema.properties.keys());
        names.map(String::as_str).collect()
    }

    /// Returns whether the schema has a default for `status`.
    pub fn has_default_status(&self) -> bool {
        self.schema.properties.get("status").is_some_and(|status| status.default.is_some())
    }

    /// Sets the defaults of the schema in `object`.
    ///
    /// # Errors
    /// Returns [`Unsupported`] if the defaults take too much memory.
    pub fn set_defaults(&self, object: &mut Value) -> Result<(), Unsupported> {
        set_defaults(object, &self.schema)
    }

    /// Returns the schema errors of an object.
    ///
    /// kube-apiserver reports these errors after the metadata errors and before the errors of the scale subresource.
    ///
    /// # Errors
    /// Returns [`Unsupported`] if there are more errors than a response can list.
    pub fn schema_errors(
        &self,
        object: &Value,
        old: Option<&Value>,
        purpose: Purpose,
    ) -> Result<Vec<FieldError>, Unsupported> {
        validation::errors(&self.schema, object, old, purpose)
    }

    /// Returns `errors` together with the errors of embedded objects, lists, and rules.
    ///
    /// # Errors
    /// Returns [`Unsupported`] if a rule uses a feature that admit does not support.
    ///
    /// Source: apiextensions-apiserver pkg/registry/customresource/strategy.go, `Validate` and `ValidateUpdate`;
    /// `status_strategy.go`, `ValidateUpdate`.
    pub fn validate_further(
        &self,
        mut errors: Vec<FieldError>,
        object: &Value,
        old: Option<&Value>,
        purpose: Purpose,
    ) -> Result<Judgment, Unsupported> {
        if purpose == Purpose::Object {
            errors.extend(coerce::errors(object, &self.schema));
        }
        let lists = list_types::errors(object, &self.schema);
        // Lists that were invalid before may remain invalid.
        if old.is_none_or(|old| list_types::errors(old, &self.schema).is_empty()) {
            errors.extend(lists);
        }
        let Some(rules) = &self.rules else { return Ok(Judgment { errors, warnings: Vec::new() }) };
        if errors.iter().any(is_blocking) {
            let why = "some validation rules were not checked because the object was invalid; correct the existing \
                       errors to complete validation";
            errors.push(FieldError::invalid("<nil>", "null", why));
            return Ok(Judgment { errors, warnings: Vec::new() });
        }
        let found = rules.judge(&self.schema, object, old)?;
        errors.extend(found.errors);
        Ok(Judgment { errors, warnings: found.warnings })
    }
}

/// Returns whether an error prevents rules from being evaluated.
///
/// Source: apiextensions-apiserver pkg/registry/customresource/strategy.go, `hasBlockingErr`.
fn is_blocking(error: &FieldError) -> bool {
    [
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    ]
    .contains(&error.reason)
}

/// Formats a path for an error. The empty path of the whole object becomes `<nil>`.
fn shown(path: &str) -> &str {
    if path.is_empty() { "<nil>" } else { path }
}

#[cfg(test)]
mod tests;
