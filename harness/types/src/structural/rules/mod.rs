//! `x-kubernetes-validations`: rules in the Common Expression Language.
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
pub use self::path::{Found, Notation, resolve};
use super::correlation::Correlation;
use super::node::Schema;
use crate::path::Path;
use crate::status::{FieldError, Unsupported};

/// What the evaluation of the rules of one object may cost.
///
/// Source: apiserver pkg/apis/cel/config.go, `RuntimeCELCostBudget`.
const BUDGET: u64 = 10_000_000;

/// The rules of a schema and of what is in it. A part without any is not there.
#[derive(Debug, Default)]
pub(super) struct Rules {
    own: Option<Own>,
    items: Option<Box<Rules>>,
    properties: BTreeMap<String, Rules>,
    additional: Option<Box<Rules>>,
    all_of: Vec<Rules>,
}

/// The rules of one schema.
#[derive(Debug)]
struct Own {
    types: Types,
    /// `type` of the schema.
    kind: String,
    rules: Vec<Rule>,
}

/// One of `x-kubernetes-validations`.
#[derive(Debug)]
struct Rule {
    /// The error of what does not compile.
    program: Result<Program, String>,
    /// Whether it compares with what was there before.
    uses_old: bool,
    optional_old: bool,
    text: String,
    message: String,
    message_expression: Option<Program>,
    reason: String,
    /// Relative to the value; empty if there is none.
    field_path: String,
}

/// What rules say of an object.
#[derive(Debug, Default)]
pub struct Judgment {
    /// What the rules refuse, in their order.
    pub errors: Vec<FieldError>,
    /// What the rules say of parts that did not change.
    pub warnings: Vec<String>,
}

impl Rules {
    /// Evaluates all rules. What they say of parts that did not change since `old` is no error.
    ///
    /// # Errors
    /// An expression that admit cannot evaluate.
    pub(super) fn judge(
        &self,
        schema: &Schema,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Judgment, Unsupported> {
        self.judge_correlated(object, old, old.map(|old| Correlation { old, new: object, schema }))
    }

    /// Evaluates all rules. What they say of parts that did not change since `old` is an error, too.
    ///
    /// # Errors
    /// An expression that admit cannot evaluate.
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
        let mut run = Run { left: Some(BUDGET), judgment: Judgment::default(), unsupported: None };
        run.visit(self, object, old, &Path::Root, evaluate::Ratchet::new(correlation));
        match run.unsupported {
            Some(unsupported) => Err(unsupported),
            None => Ok(run.judgment),
        }
    }
}
