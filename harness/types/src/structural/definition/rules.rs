//! Validates the CEL rules of a new definition. They must be well-formed, compile, and stay within the cost limits.
//!
//! Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go.

use kubernetes_cel::declared_type::{DeclaredType, with_declared_type, with_optional_old_self};
use kubernetes_cel::environment::Environment;
use kubernetes_cel::kubernetes::{Expressions, Version, environment};
use kubernetes_cel::schema::Schema as Types;
use kubernetes_cel::types::Type;
use serde_json::{Value, json};

use super::super::rules::normalized;
use super::openapi::{Cardinality, Context, SchemaErrors, quoted};
use super::{list, text};
use crate::quoting::{encode, quote};
use crate::status::{FieldError, Unsupported};

/// The limit on the estimated cost of one rule.
///
/// Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go, `StaticEstimatedCostLimit`.
const STATIC_ESTIMATED_COST_LIMIT: u64 = 10_000_000;
/// The limit on the estimated cost of all rules of a schema.
const STATIC_ESTIMATED_CRD_COST_LIMIT: u64 = 100_000_000;

/// The maximum number of expensive rules to report if the total cost exceeds the limit.
const MAX_REPORTED_COSTS: usize = 4;
/// The minimum cost of a rule that is reported as expensive.
const EXPENSIVE: u64 = STATIC_ESTIMATED_CRD_COST_LIMIT / 100;

const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// The estimated costs of the rules of a schema.
#[derive(Debug, Default)]
pub(super) struct Cost {
    total: u64,
    rules: Vec<(u64, String)>,
}

impl Cost {
    fn add(&mut self, cost: u64, path: &str) {
        self.total = self.total.saturating_add(cost);
        if cost >= EXPENSIVE {
            self.rules.push((cost, path.to_owned()));
        }
    }

    /// Returns the errors if the total cost exceeds the limit.
    ///
    /// Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/cel_validation.go`, `TotalCost`.
    pub(super) fn errors(mut self, path: &str) -> Vec<FieldError> {
        if self.total <= STATIC_ESTIMATED_CRD_COST_LIMIT {
            return Vec::new();
        }
        self.rules.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let named = self.rules.into_iter().take(MAX_REPORTED_COSTS);
        let mut errors: Vec<FieldError> = named.map(|(_, path)| FieldError::forbidden(path, why)).collect();
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(
            path,
            too_expensive(what, self.total, STATIC_ESTIMATED_CRD_COST_LIMIT),
        ));
        errors
    }
}

/// Returns the message for a cost that exceeds its limit.
///
/// Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go, `getCostErrorMessage`.
#[expect(clippy::cast_precision_loss, reason = "so does kube-apiserver")]
fn too_expensive(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// Validates the fields of all rules of a schema, without compiling expressions.
pub(super) fn check(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, rule) in list(schema, "x-kubernetes-validations").iter().enumerate() {
        let field = |name: &str| format!("{path}.x-kubernetes-validations[{index}].{name}");
        let has_newlines = |text: &str| text.contains(['\n', '\r']);
        let (expression, message) = (text(rule, "rule").trim(), text(rule, "message").trim());
        let given = |name: &str| !text(rule, name).is_empty();
        let shown = |name: &str| quote(text(rule, name));
        if expression.is_empty() {
            errors.push(FieldError::required(field("rule"), "rule is not specified"));
        } else if given("message") && message.is_empty() {
            errors.push(FieldError::invalid(
                field("message"),
                shown("message"),
                "must be non-empty if specified",
            ));
        } else if has_newlines(message) {
            errors.push(FieldError::invalid(
                field("message"),
                shown("message"),
                "must not contain line breaks",
            ));
        } else if has_newlines(expression) && message.is_empty() {
            let why = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(field("message"), why));
        }
        if given("messageExpression") && text(rule, "messageExpression").trim().is_empty() {
            let why = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(field("messageExpression"), why));
        }
        let reason = rule.get("reason").and_then(Value::as_str);
        if let Some(reason) = reason.filter(|reason| !REASONS.contains(reason)) {
            errors.push(FieldError::not_supported(field("reason"), quote(reason), quoted(&REASONS)));
        }
        let place = text(rule, "fieldPath");
        if given("fieldPath") && place.trim().is_empty() {
            errors.push(FieldError::invalid(
                field("fieldPath"),
                quote(place),
                "must be non-empty if specified",
            ));
        }
        if has_newlines(place) {
            errors.push(FieldError::invalid(
                field("fieldPath"),
                quote(place),
                "must not contain line breaks",
            ));
        }
        if given("fieldPath") && normalized(place, schema).is_err() {
            errors.push(FieldError::invalid(field("fieldPath"), quote(place), "must be a valid path"));
        }
    }
}

/// Compiles the rules of a schema, and collects their errors and costs.
///
/// # Errors
/// Returns [`Unsupported`] if an expression uses a feature that admit does not support.
pub(super) fn compile(
    schema: &Value,
    path: &str,
    context: &Context,
    is_root: bool,
    found: &mut SchemaErrors,
) -> Result<(), Unsupported> {
    let rules = list(schema, "x-kubernetes-validations");
    if rules.is_empty() {
        return Ok(());
    }
    let unsupported = |what: String| Unsupported { what };
    let types =
        Types::from_json(schema).map_err(|error| unsupported(format!("a schema with rules: {error}")))?;
    let types = if is_root { types.of_resource() } else { types };
    let Some(of) = types.declared_type() else {
        let why = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to \
                   convert structural schema to CEL declarations";
        found.of_rules.push(FieldError::internal(format!("{path}.x-kubernetes-validations"), why));
        return Ok(());
    };
    let base = environment(Version::new(1, 37), Expressions::New);
    let strict = with_declared_type(base.clone(), &of, "selfType", &["self", "oldSelf"]);
    for (index, rule) in rules.iter().enumerate() {
        let field = |name: &str| format!("{path}.x-kubernetes-validations[{index}].{name}");
        let is_optional = rule.get("optionalOldSelf") == Some(&Value::Bool(true));
        let optional = is_optional.then(|| with_optional_old_self(base.clone(), &of, "selfType"));
        let environment = optional.as_ref().unwrap_or(&strict);
        let compiled = compiled(
            environment,
            text(rule, "rule"),
            &of,
            &Type::Bool,
            "cel expression must evaluate to a bool",
        )?;
        let (uses_old, most) = match &compiled {
            Ok((uses_old, most)) => (*uses_old, *most),
            Err(_) => (false, 0),
        };
        let times = match context.cardinality {
            Cardinality::AtMost(times) => times,
            Cardinality::Unknown | Cardinality::Unbounded => of.max_cardinality(),
        };
        let cost = most.saturating_mul(times);
        if cost > STATIC_ESTIMATED_COST_LIMIT {
            let why = too_expensive("estimated rule cost", cost, STATIC_ESTIMATED_COST_LIMIT);
            found.of_rules.push(FieldError::forbidden(field("rule"), why));
        }
        found.cost.add(cost, &field("rule"));
        if let Err(why) = &compiled {
            found.of_rules.push(FieldError::invalid(field("rule"), shown(rule), why));
        } else if !text(rule, "messageExpression").is_empty() {
            message(rule, environment, &of, &field("messageExpression"), found)?;
        }
        if uses_old {
            if let Some(at) = context.uncorrelated_at() {
                let why =
                    format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {at}");
                found.of_rules.push(FieldError::invalid(field("rule"), quote(text(rule, "rule")), why));
            }
        } else if let Some(optional) = rule.get("optionalOldSelf").filter(|value| !value.is_null()) {
            let why = "may not be set if oldSelf is not used in rule";
            found.of_rules.push(FieldError::invalid(field("optionalOldSelf"), optional, why));
        }
    }
    Ok(())
}

fn message(
    rule: &Value,
    environment: &Environment,
    of: &DeclaredType,
    field: &str,
    found: &mut SchemaErrors,
) -> Result<(), Unsupported> {
    let wrong_type = "messageExpression must evaluate to a string";
    match compiled(environment, text(rule, "messageExpression"), of, &Type::String, wrong_type)? {
        Err(why) => {
            let why = match why.strip_prefix("compilation failed: ") {
                Some(issues) => format!("messageExpression compilation failed: {issues}"),
                None => why,
            };
            found.of_rules.push(FieldError::invalid(field, shown(rule), why));
        }
        Ok((_, cost)) => {
            if cost > STATIC_ESTIMATED_COST_LIMIT {
                let why =
                    too_expensive("estimated messageExpression cost", cost, STATIC_ESTIMATED_COST_LIMIT);
                found.of_rules.push(FieldError::forbidden(field, why));
            }
            found.cost.add(cost, field);
        }
    }
    Ok(())
}

/// Compiles an expression.
///
/// Returns whether the expression uses `oldSelf`, and the expression's maximum cost; or the compilation error.
fn compiled(
    environment: &Environment,
    expression: &str,
    of: &DeclaredType,
    expected: &Type,
    wrong_type: &str,
) -> Result<Result<(bool, u64), String>, Unsupported> {
    let program = super::super::rules::compiled(environment, expression, expected, wrong_type)?;
    Ok(program.map(|program| {
        let most = environment.estimate(expression, of).map(|range| range.max).unwrap_or_default();
        (program.mentions("oldSelf"), most)
    }))
}

/// Formats a rule as Go does in error messages.
fn shown(rule: &Value) -> String {
    let of = |name: &str| Value::from(text(rule, name));
    let or_null = |name: &str| rule.get(name).cloned().unwrap_or_default();
    let members = [
        ("Rule", of("rule")),
        ("Message", of("message")),
        ("MessageExpression", of("messageExpression")),
        ("Reason", or_null("reason")),
        ("FieldPath", of("fieldPath")),
        ("OptionalOldSelf", or_null("optionalOldSelf")),
    ];
    let members: Vec<String> =
        members.iter().map(|(name, value)| format!("{}:{}", json!(name), encode(value))).collect();
    format!("{{{}}}", members.join(","))
}
