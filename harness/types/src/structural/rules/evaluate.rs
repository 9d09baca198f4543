//! Evaluates CEL rules on the parts of an object.

use std::collections::HashMap;

use kubernetes_cel::function::Error;
use kubernetes_cel::value::Value as Cel;
use kubernetes_cel::{Evaluation, Limits, Program};
use serde_json::Value;

use super::super::coerce::displayed;
use super::super::correlation::{Correlation, ItemsByKey};
use super::super::shown;
use super::{Judgment, Rule, Rules, SchemaRules};
use crate::path::Path;
use crate::quoting::quote;
use crate::status::{FieldError, Unsupported};

/// The maximum length, in bytes, of the result of a `messageExpression`.
///
/// Source: apiserver pkg/apis/cel/config.go, `MaxEvaluatedMessageExpressionSizeBytes`.
const MAX_EVALUATED_MESSAGE_EXPRESSION_SIZE_BYTES: usize = 5 * 1024;

/// The error for rules in `items` of a schema that is not a list, or in `additionalProperties` of a non-map schema.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/cel/compilation.go, `Compile`.
const UNDECLARED: &str =
    "rule compiler initialization error: failed to convert to declType for CEL validation rules";

/// The error for an expression that exceeds its cost limit.
const COST_EXCEEDED: &str = "operation cancelled: actual cost limit exceeded";

/// The state of one evaluation of all rules.
pub(super) struct Run {
    /// The remaining cost budget; `None` if the budget was exceeded.
    pub(super) left: Option<u64>,
    pub(super) judgment: Judgment,
    pub(super) unsupported: Option<Unsupported>,
}

/// The correlation of a value with its stored value, and the correlation of the nearest ancestor that has one.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/cel/validation.go, `ratchetingOptions`.
#[derive(Clone, Copy)]
pub(super) struct Ratchet<'a> {
    current: Option<Correlation<'a>>,
    around: Option<Correlation<'a>>,
}

impl<'a> Ratchet<'a> {
    pub(super) fn new(current: Option<Correlation<'a>>) -> Self {
        Self { current, around: None }
    }

    fn is_unchanged(self) -> bool {
        self.current.or(self.around).is_some_and(Correlation::is_unchanged)
    }

    fn member(self, name: &str) -> Self {
        let Some(current) = self.current else { return self };
        if self.around.is_none() && ["apiVersion", "kind"].contains(&name) {
            return Self { current: None, around: None };
        }
        Self { current: current.member(name), around: Some(current) }
    }

    fn item(self, before: Option<&ItemsByKey<'a>>, item: &'a Value) -> Self {
        let (Some(current), Some(before)) = (self.current, before) else { return self };
        Self { current: current.item(before, item), around: Some(current) }
    }
}

impl Run {
    fn is_over(&self) -> bool {
        self.left.is_none() || self.unsupported.is_some()
    }

    /// Evaluates `rules` on a value and its parts.
    ///
    /// Source: apiextensions-apiserver pkg/apiserver/schema/cel/validation.go, `validate`.
    pub(super) fn visit<'a>(
        &mut self,
        rules: &'a Rules,
        value: &'a Value,
        old: Option<&'a Value>,
        path: &Path<'_>,
        ratchet: Ratchet<'a>,
    ) {
        if value.is_null() || self.is_over() {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        if let Some(own) = &rules.own {
            self.evaluate(own, value, old, path, ratchet);
        }
        for rules in &rules.all_of {
            if self.is_over() {
                return;
            }
            self.visit(rules, value, old, path, Ratchet { current: None, around: ratchet.around });
        }
        if self.is_over() {
            return;
        }
        match value {
            Value::Object(members) => {
                let before = |name: &str| old.and_then(|old| old.get(name));
                if let Some(rules) = &rules.additional {
                    for (name, value) in members {
                        self.visit(
                            rules,
                            value,
                            before(name),
                            &Path::Entry(path, name),
                            ratchet.member(name),
                        );
                    }
                }
                for (name, rules) in &rules.properties {
                    if let Some(value) = members.get(name) {
                        self.visit(rules, value, before(name), &path.member(name), ratchet.member(name));
                    }
                }
            }
            Value::Array(items) => {
                let Some(rules) = &rules.items else { return };
                // Old list items are matched by the keys in the schema.
                let before = ratchet.current.map(|at| ItemsByKey::new(at.old, at.schema));
                for (index, item) in items.iter().enumerate() {
                    let old = before.as_ref().and_then(|before| before.get(item));
                    let path = Path::Item(path, index);
                    self.visit(rules, item, old, &path, ratchet.item(before.as_ref(), item));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Evaluates the rules of one schema on a value, without its parts.
    ///
    /// Source: apiextensions-apiserver pkg/apiserver/schema/cel/validation.go, `validateExpressions`.
    /// Rule: SCH-07.
    fn evaluate<'a>(
        &mut self,
        own: &'a SchemaRules,
        value: &'a Value,
        old: Option<&'a Value>,
        path: &Path<'_>,
        ratchet: Ratchet<'a>,
    ) {
        if self.left == Some(0) {
            self.run_out(own, path);
            return;
        }
        if own.is_undeclared {
            self.invalid(own, path, UNDECLARED);
            return;
        }
        let current = Cel::from_structured(value, &own.types);
        let before = old.map(|old| Cel::from_structured(old, &own.types));
        for rule in &own.rules {
            let program = match &rule.program {
                Ok(program) => program,
                Err(why) => {
                    self.invalid(own, path, &format!("rule compile error: {why}"));
                    continue;
                }
            };
            if rule.uses_old && before.is_none() && !rule.optional_old {
                continue;
            }
            let mut variables = HashMap::from([("self", current.clone())]);
            if rule.optional_old {
                let optional = before.clone().map_or(Cel::Optional(None), Cel::some);
                variables.insert("oldSelf", optional);
            } else if let Some(before) = &before {
                variables.insert("oldSelf", before.clone());
            }
            let Evaluation { value: result, cost, .. } = program.evaluate(&variables, &Limits::default());
            self.left = self.left.and_then(|left| left.checked_sub(cost));
            if self.left.is_none() {
                self.run_out(own, path);
                return;
            }
            match result {
                Ok(Cel::Bool(true)) => {}
                Ok(_) => {
                    if !self.refuse(own, rule, value, path, &variables, ratchet) {
                        return;
                    }
                }
                Err(Error::Unsupported(what)) => {
                    self.unsupported =
                        Some(Unsupported { what: format!("the rule {}: {what}", quote(&rule.text)) });
                    return;
                }
                Err(error) => {
                    let error = error.to_string();
                    let shown_rule = rule.shown();
                    if error.starts_with(COST_EXCEEDED) {
                        let why = format!(
                            "'{error}': no further validation rules will be run due to call cost exceeds limit for \
                             rule: {shown_rule}"
                        );
                        self.invalid(own, path, &why);
                        self.left = None;
                        return;
                    }
                    let why = if error.starts_with("no such overload") {
                        format!(
                            "'{error}': call arguments did not match a supported operator, function or macro signature \
                             for rule: {shown_rule}"
                        )
                    } else {
                        format!("{error} evaluating rule: {shown_rule}")
                    };
                    self.invalid(own, path, &why);
                }
            }
        }
    }

    fn invalid(&mut self, own: &SchemaRules, path: &Path<'_>, why: &str) {
        self.judgment.errors.push(FieldError::invalid(shown(&path.to_string()), quote(&own.kind), why));
    }

    fn run_out(&mut self, own: &SchemaRules, path: &Path<'_>) {
        let why =
            "validation failed due to running out of cost budget, no further validation rules will be run";
        self.invalid(own, path, why);
        self.left = None;
    }

    /// Adds the error for a rule that evaluates to `false`. Returns `false` if the evaluation must stop.
    fn refuse<'a>(
        &mut self,
        own: &'a SchemaRules,
        rule: &'a Rule,
        value: &Value,
        path: &Path<'_>,
        variables: &HashMap<&str, Cel<'a>>,
        ratchet: Ratchet<'_>,
    ) -> bool {
        let place =
            if rule.field_path.is_empty() { *path } else { path.member(&rule.field_path) }.to_string();
        let is_kept = !rule.uses_old && ratchet.is_unchanged();
        let add = |judgment: &mut Judgment, error: FieldError| {
            if is_kept {
                judgment.warnings.push(error.to_string());
            } else {
                judgment.errors.push(error);
            }
        };
        let mut message = None;
        if let Some(expression) = &rule.message_expression {
            match self.message(expression, variables) {
                Ok(text) => message = Some(text),
                Err(None) => {}
                Err(Some(why)) => {
                    add(&mut self.judgment, FieldError::invalid(shown(&place), quote(&own.kind), why));
                    self.left = None;
                    return false;
                }
            }
        }
        let message = message.unwrap_or_else(|| rule.message_or_default());
        let place = shown(&place);
        let is_container = ["object", "array"].contains(&own.kind.as_str());
        let error = match rule.reason.as_str() {
            "FieldValueForbidden" => FieldError::forbidden(place, message),
            "FieldValueRequired" => FieldError::required(place, &message),
            "FieldValueDuplicate" if is_container => FieldError::duplicate_unshown(place),
            "FieldValueDuplicate" => FieldError::duplicate(place, displayed(value)),
            _ if is_container => FieldError::invalid_unshown(place, message),
            _ => FieldError::invalid(place, displayed(value), message),
        };
        add(&mut self.judgment, error);
        true
    }

    /// Evaluates a `messageExpression`.
    ///
    /// `Err(None)` means that the rule's default message applies; after `Err(Some(…))`, no further rules are evaluated.
    ///
    /// Source: apiextensions-apiserver pkg/apiserver/schema/cel/validation.go, `evalMessageExpression`.
    fn message<'a>(
        &mut self,
        expression: &'a Program,
        variables: &HashMap<&str, Cel<'a>>,
    ) -> Result<String, Option<String>> {
        let Evaluation { value, cost, .. } = expression.evaluate(variables, &Limits::default());
        let rest = self.left.and_then(|left| left.checked_sub(cost)).ok_or_else(|| {
            let why = "messageExpression evaluation failed due to running out of cost budget, no further validation \
                       rules will be run";
            Some(why.to_owned())
        })?;
        match value {
            Ok(value) => {
                self.left = Some(rest);
                let text = value.as_str().unwrap_or_default().trim();
                let is_fit = !text.is_empty()
                    && text.len() <= MAX_EVALUATED_MESSAGE_EXPRESSION_SIZE_BYTES
                    && !text.contains('\n');
                if is_fit { Ok(text.to_owned()) } else { Err(None) }
            }
            Err(error) if error.to_string().starts_with(COST_EXCEEDED) => Err(Some(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                quote(expression.source())
            ))),
            Err(_) => {
                self.left = Some(rest);
                Err(None)
            }
        }
    }
}

impl Rule {
    /// Returns the message of the rule, or its expression if it does not have a message.
    ///
    /// Source: apiextensions-apiserver pkg/apiserver/schema/cel/validation.go, `ruleErrorString`.
    fn shown(&self) -> &str {
        if self.message.is_empty() { &self.text } else { &self.message }
    }

    /// Returns the message of the rule, or a default message that contains the expression.
    ///
    /// Source: apiextensions-apiserver pkg/apiserver/schema/cel/validation.go, `ruleMessageOrDefault`.
    fn message_or_default(&self) -> String {
        if self.message.is_empty() { format!("failed rule: {}", self.text) } else { self.message.clone() }
    }
}
