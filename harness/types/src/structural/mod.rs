//! What the structural schema of a definition makes of its custom resources: pruning, defaults, validation.
//!
//! A [`Schema`] is parsed once, when its definition is stored. Everything else here is a function of it and of an object.
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
pub use self::rules::{Found, Judgment, Notation, resolve};
pub use self::validation::Purpose;
use crate::status::{FieldError, Unsupported};

/// The schema of one version of a definition, compiled.
#[derive(Debug)]
pub struct Compiled {
    schema: Schema,
    rules: Option<Rules>,
}

impl Compiled {
    /// Compiles `openAPIV3Schema` of a version.
    ///
    /// # Errors
    /// What of it admit does not apply.
    pub fn new(schema: &Value) -> Result<Arc<Self>, Unsupported> {
        let mut parsed = parse::parse(schema)?;
        defaulting::prune_defaults(&mut parsed);
        let rules = rules::rules(schema)?;
        Ok(Arc::new(Self { schema: parsed, rules }))
    }

    /// The type that server-side apply and `metadata.managedFields` take the objects for.
    ///
    /// Rule: APY-18.
    pub fn applied_type(&self) -> managed_fields::Type<AppliedType<'_>> {
        AppliedType::of_root(&self.schema)
    }

    /// Makes of an object what the decoder makes of it, but for its own metadata: unknown fields and null go, embedded
    /// metadata are normalized. The paths of the unknown fields, in the order in which they are reported.
    ///
    /// # Errors
    /// Metadata of an embedded object that are none, unless `lenient`: so they are read from the storage.
    ///
    /// Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`, `unstructuredSchemaCoercer.apply`.
    pub fn decode(&self, object: &mut Value, lenient: bool) -> Result<Vec<String>, FieldError> {
        let mut unknown = prune(object, &self.schema);
        prune_nulls(object, &self.schema);
        unknown.extend(coerce(object, &self.schema, lenient)?);
        Ok(unknown)
    }

    /// Whether the status itself has a default.
    pub fn has_default_status(&self) -> bool {
        self.schema.properties.get("status").is_some_and(|status| status.default.is_some())
    }

    /// Fills in the defaults.
    ///
    /// # Errors
    /// They take too much memory.
    pub fn set_defaults(&self, object: &mut Value) -> Result<(), Unsupported> {
        set_defaults(object, &self.schema)
    }

    /// What is wrong with an object, behind what is wrong with its metadata and before what is wrong with its scale.
    ///
    /// # Errors
    /// More errors than an answer can list.
    pub fn schema_errors(
        &self,
        object: &Value,
        old: Option<&Value>,
        purpose: Purpose,
    ) -> Result<Vec<FieldError>, Unsupported> {
        validation::errors(&self.schema, object, old, purpose)
    }

    /// The `errors` so far, and what else is wrong: embedded objects, lists, rules.
    ///
    /// # Errors
    /// A rule that admit cannot evaluate.
    ///
    /// Source: apiextensions-apiserver pkg/registry/customresource/strategy.go, `Validate` and `ValidateUpdate`;
    /// `status_strategy.go`, `ValidateUpdate`.
    pub fn judge_further(
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
        // Lists that were wrong before may stay wrong.
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

/// Whether an error keeps rules from being evaluated.
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

/// A path as an error has it: that of the whole object is `<nil>`.
fn shown(path: &str) -> &str {
    if path.is_empty() { "<nil>" } else { path }
}

#[cfg(test)]
mod tests;
