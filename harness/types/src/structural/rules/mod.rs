//! Compiles and evaluates validation rules in CEL: `x-kubernetes-validations`.
//!
//! Source: apiextensions-apiserver pkg/apiserver/schema/cel/{compilation,validation}.go.

mod compile;
mod evaluate;
mod path;

use std::collections::BTreeMap;

use kubernetes_cel::Program;
use kubernetes_cel::schema::Schema as Types;
use serde_json::Value;

pub(super) use self::compile::{compiled, rules};
use self::evaluate::Run;
pub(super) use self::path::normalized;
pub use self::path::{Notation, ResolvedPath, resolve};
use super::correlation::Correlation;
use super::node::Schema;
use crate::path::Path;
use crate::status::{FieldError, Unsupported};

/// The cost budget for the rules of one object.
///
/// Source: apiserver pkg/apis/cel/config.go, `RuntimeCELCostBudget`.
const RUNTIME_CEL_COST_BUDGET: u64 = 10_000_000;

/// The rules of a schema and its parts. Parts without rules are omitted.
#[derive(Debug, Default)]
pub(super) struct Rules {
    own: Option<SchemaRules>,
    items: Option<Box<Rules>>,
    properties: BTreeMap<String, Rules>,
    additional: Option<Box<Rules>>,
    all_of: Vec<Rules>,
}

/// The rules of one schema, without the rules of its parts.
#[derive(Debug)]
struct SchemaRules {
    types: Types,
    /// Whether kube-apiserver cannot derive a CEL type for the schema, so that evaluating its rules fails.
    is_undeclared: bool,
    /// The `type` of the schema.
    kind: String,
    rules: Vec<Rule>,
}

/// One entry of `x-kubernetes-validations`.
#[derive(Debug)]
struct Rule {
    /// The compiled expression, or its compilation error.
    program: Result<Program, String>,
    /// Whether the rule uses `oldSelf`.
    uses_old: bool,
    optional_old: bool,
    text: String,
    message: String,
    message_expression: Option<Program>,
    reason: String,
    /// The path of the field for errors, relative to the value; may be empty.
    field_path: String,
}

/// The result of evaluating the rules on an object.
#[derive(Debug, Default)]
pub struct Judgment {
    /// The errors, in the order of the rules.
    pub errors: Vec<FieldError>,
    /// The warnings for unchanged parts that violate rules.
    pub warnings: Vec<String>,
}

impl Rules {
    /// Evaluates all rules on an object. If a part has not changed since `old`, its violations are warnings.
    ///
    /// # Errors
    /// Returns [`Unsupported`] if an expression uses a feature that admit does not support.
    pub(super) fn judge(
        &self,
        schema: &Schema,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Judgment, Unsupported> {
        self.judge_correlated(object, old, old.map(|old| Correlation { old, new: object, schema }))
    }

    /// Evaluates all rules on an object. All violations are errors, even in parts that have not changed since `old`.
    ///
    /// # Errors
    /// Returns [`Unsupported`] if an expression uses a feature that admit does not support.
    pub(super) fn judge_strictly(
        &self,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Judgment, Unsupported> {
        self.judge_correlated(object, old, None)
    }

    fn judge_correlated<'a>(
        &'a self,
        object: &'a Value,
        old: Option<&'a Value>,
        correlation: Option<Correlation<'a>>,
    ) -> Result<Judgment, Unsupported> {
        let mut run =
            Run { left: Some(RUNTIME_CEL_COST_BUDGET), judgment: Judgment::default(), unsupported: None };
        run.visit(self, object, old, &Path::Root, evaluate::Ratchet::new(correlation));
        match run.unsupported {
            Some(unsupported) => Err(unsupported),
            None => Ok(run.judgment),
        }
    }
}
