//! What is said of an expression.

use std::fmt::Write as _;

use kubernetes_cel::environment::Environment;
use kubernetes_cel::function::Error;
use kubernetes_cel::value::Value;
use kubernetes_cel::{COST_LIMIT, Limits, Observation, Program};
use serde::Serialize;
use serde_json::{Map, Number, Value as Json};

use super::Expression;
use super::input::InputVariables;
use crate::Failure;

/// What is said of an expression. What there is nothing to say of is left out.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    /// The webhook whose condition it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<&'a str>,
    /// The name of the condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<&'a str>,
    /// The expression.
    expr: &'a str,
    /// Its static type.
    #[serde(skip_serializing_if = "Option::is_none", rename = "type")]
    result_type: Option<String>,
    /// Its value: as JSON where JSON has such a value, otherwise as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Json>,
    /// What the evaluation cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
    /// Why kube-apiserver refuses it as a match condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    compile_error: Option<String>,
    /// Why it has no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_error: Option<String>,
    /// The part that it came up in: the byte at which it begins.
    #[serde(skip)]
    failed_at: Option<usize>,
    /// What its parts evaluate to, in the order in which that was known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    each: Vec<Each>,
}

/// A part of an expression that was evaluated.
#[derive(Debug, Serialize)]
struct Each {
    /// The part.
    expr: String,
    /// How often it was evaluated: more than once in a loop.
    times: u64,
    /// Its value, the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Json>,
    /// Why it had no value, the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_error: Option<String>,
    /// What it cost itself, without its own parts, all times together.
    cost: u64,
}

impl<'a> Report<'a> {
    pub(super) fn new(
        expression: &'a Expression,
        environment: &Environment,
        variables: &InputVariables<'_>,
        each: bool,
    ) -> Self {
        let (webhook, condition) = match &expression.condition {
            Some((webhook, condition)) => (Some(webhook.as_str()), Some(condition.as_str())),
            None => (None, None),
        };
        let mut report = Self {
            webhook,
            condition,
            expr: &expression.text,
            result_type: None,
            value: None,
            cost: None,
            compile_error: None,
            run_error: None,
            failed_at: None,
            each: Vec::new(),
        };
        let program = match environment.compile(&expression.text) {
            Ok(program) => program,
            Err(error) => return Self { compile_error: Some(error.to_string()), ..report },
        };
        let result_type = program.result_type().runtime_text();
        if !program.result_type().is_bool() {
            report.compile_error = Some(format!("must evaluate to bool but got {result_type}"));
        }
        report.result_type = Some(result_type);
        report.evaluate(&program, variables, each);
        report
    }

    fn evaluate(&mut self, program: &Program, variables: &InputVariables<'_>, each: bool) {
        let (evaluation, observations) = program.observe(variables, &Limits::default());
        self.cost = Some(evaluation.cost);
        match &evaluation.value {
            Ok(value) => self.value = Some(json_of(value)),
            Err(error @ Error::Unsupported(_)) => self.run_error = Some(error.to_string()),
            Err(error) => {
                self.run_error = Some(format!("expression '{}' resulted in error: {error}", self.expr));
            }
        }
        if let Err(error) = &evaluation.value {
            let is_it = |it: &&Observation<'_>| it.value.as_ref().is_err_and(|found| found == error);
            self.failed_at = observations.iter().find(is_it).map(|first| first.start);
        }
        if each {
            self.each = each_of(&observations);
        }
    }

    /// Whether there is no value; the value of a condition must be a bool.
    pub(super) fn failed(&self) -> bool {
        self.value.is_none() || self.condition.is_some() && self.compile_error.is_some()
    }

    /// For people.
    pub(super) fn text(&self, with_expression: bool) -> String {
        let mut text = String::new();
        if let (Some(webhook), Some(condition)) = (self.webhook, self.condition) {
            let _ = writeln!(text, "{webhook}, condition {condition}");
        }
        if with_expression {
            let _ = writeln!(text, "{}", self.expr);
        }
        let mut line = |name: &str, value: &dyn std::fmt::Display| {
            let _ = writeln!(text, "  {name:<6} {value}");
        };
        if let Some(value) = &self.value {
            line("value", value);
        }
        if let Some(error) = &self.run_error {
            line("error", error);
            if let Some((before, from)) = self.failed_at.and_then(|start| self.expr.split_at_checked(start)) {
                let head = before.rsplit('\n').next().unwrap_or_default();
                let tail = from.lines().next().unwrap_or_default();
                line("", &format_args!("| {head}{tail}"));
                line("", &format_args!("| {}^", ".".repeat(head.chars().count())));
            }
        }
        if let Some(result_type) = &self.result_type {
            line("type", result_type);
        }
        if let Some(cost) = self.cost {
            line("cost", &format_args!("{cost} of {COST_LIMIT} ({})", share(cost)));
        }
        if let Some(error) = &self.compile_error {
            let name = if self.value.is_some() || self.run_error.is_some() { "note" } else { "error" };
            let why = if name == "note" { "no match condition: " } else { "" };
            line(name, &format_args!("{why}{}", error.replace('\n', "\n         ")));
        }
        let width = self.each.iter().map(|each| each.expr.chars().count()).max().unwrap_or_default();
        for each in &self.each {
            let times = if each.times == 1 { String::new() } else { format!(", {} times", each.times) };
            let value = match (&each.value, &each.run_error) {
                (Some(value), _) => value.to_string(),
                (None, error) => format!("error: {}", error.as_deref().unwrap_or_default()),
            };
            let _ = writeln!(text, "    {:<width$}  {value}  (cost {}{times})", each.expr, each.cost);
        }
        text
    }

    /// One line of JSON.
    pub(super) fn json(&self) -> Result<String, Failure> {
        serde_json::to_string(self).map(|line| line + "\n").map_err(Failure::environment)
    }

    /// One YAML document.
    pub(super) fn yaml(&self) -> Result<String, Failure> {
        serde_saphyr::to_string(self).map(|text| format!("---\n{text}")).map_err(Failure::environment)
    }
}

/// The parts that were evaluated. A part costs what the cost has grown by since the observation before it, which is that
/// of its last operand.
fn each_of(observations: &[Observation<'_>]) -> Vec<Each> {
    let mut each: Vec<(usize, Each)> = Vec::new();
    let mut before = 0;
    for Observation { text, start, value, cost, .. } in observations {
        let own = cost.saturating_sub(before);
        before = *cost;
        let (value, run_error) = match value {
            Ok(value) => (Some(json_of(value)), None),
            Err(error) => (None, Some(error.to_string())),
        };
        if let Some((_, known)) = each.iter_mut().find(|(at, known)| at == start && known.expr == *text) {
            known.times += 1;
            known.cost += own;
            (known.value, known.run_error) = (value, run_error);
        } else {
            let expr = (*text).to_owned();
            each.push((*start, Each { expr, times: 1, value, run_error, cost: own }));
        }
    }
    each.into_iter().map(|(_, each)| each).collect()
}

/// The share of what an expression may cost.
fn share(cost: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    let percent = cost as f64 * 100.0 / COST_LIMIT as f64;
    if percent < 0.1 { "less than 0.1 %".to_owned() } else { format!("{percent:.1} %") }
}

/// The value as JSON; what JSON has no value for is its text.
fn json_of(value: &Value<'_>) -> Json {
    match value {
        Value::Null | Value::Optional(None) => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(value) => Json::from(*value),
        Value::Uint(value) => Json::from(*value),
        Value::Double(value) => {
            Number::from_f64(*value).map_or_else(|| Json::from(value.to_string()), Json::Number)
        }
        Value::String(text) => Json::from(text.as_str()),
        Value::List(list) => list.iter().map(|element| json_of(&element)).collect(),
        Value::Map(map) => {
            let member = |(key, value): (Value<'_>, Value<'_>)| {
                let key = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
                (key, json_of(&value))
            };
            Json::Object(map.iter().map(member).collect::<Map<_, _>>())
        }
        Value::Optional(Some(value)) => json_of(value),
        Value::Bytes(_)
        | Value::Duration(_)
        | Value::Timestamp(_)
        | Value::Type(_)
        | Value::Opaque(_)
        | _ => Json::from(value.to_string()),
    }
}
