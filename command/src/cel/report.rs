//! Reports the result of an expression as text, JSON, or YAML.

use std::fmt::Write as _;
use std::ops::Range;

use kubernetes_cel::environment::Environment;
use kubernetes_cel::function::Error;
use kubernetes_cel::value::Value;
use kubernetes_cel::{COST_LIMIT, Limits, Observation, Program};
use output::{OneLine, lines, one_line};
use serde::Serialize;
use serde_json::{Map, Number, Value as Json};

use super::Expression;
use super::input::InputVariables;

/// The report about one expression. Empty fields are omitted.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report<'a> {
    /// The name of the webhook that contains the match condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<&'a str>,
    /// The name of the match condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<&'a str>,
    /// The source text of the expression.
    expression: &'a str,
    /// The static type of the expression.
    #[serde(skip_serializing_if = "Option::is_none", rename = "type")]
    result_type: Option<String>,
    /// The value of the expression: as JSON if it can be represented, otherwise as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Json>,
    /// The CEL cost of the evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
    /// The reason why kube-apiserver rejects the expression as a match condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    compile_error: Option<String>,
    /// The error of the evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_error: Option<String>,
    /// The bytes of the expression that failed.
    #[serde(skip)]
    failed_at: Option<Range<usize>>,
    /// The values of the expression's parts, in the order in which they were evaluated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    each: Vec<Each>,
}

/// An evaluated part of an expression.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Each {
    /// The source text of the part.
    expression: String,
    /// The number of times that the part was evaluated: in a loop, more than once.
    times: u64,
    /// The value of the last evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Json>,
    /// The error of the last evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_error: Option<String>,
    /// The total cost of the part, excluding the parts within it.
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
            expression: &expression.text,
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
                self.run_error = Some(format!("expression '{}' resulted in error: {error}", self.expression));
            }
        }
        if let Err(error) = &evaluation.value {
            let is_it = |it: &&Observation<'_>| it.value.as_ref().is_err_and(|found| found == error);
            self.failed_at = observations.iter().find(is_it).map(|first| failed_part(first, error));
        }
        if each {
            self.each = each_of(&observations);
        }
    }

    /// Returns whether the expression failed. A condition that does not evaluate to a bool has failed.
    pub(super) fn failed(&self) -> bool {
        self.value.is_none() || self.condition.is_some() && self.compile_error.is_some()
    }

    /// Formats the report as text.
    pub(super) fn text(&self, with_expression: bool) -> String {
        let mut text = String::new();
        if let (Some(webhook), Some(condition)) = (self.webhook, self.condition) {
            let _ = writeln!(text, "{}, condition {}", OneLine(webhook), OneLine(condition));
        }
        if with_expression {
            let _ = writeln!(text, "{}", lines(self.expression));
        }
        let mut line = |name: &str, value: &dyn std::fmt::Display| {
            let _ = writeln!(text, "  {name:<6} {}", lines(&value.to_string()));
        };
        if let Some(value) = &self.value {
            line("value", &OneLine(value));
        }
        if let Some(error) = &self.run_error {
            line("error", error);
            if let Some(failed) = &self.failed_at
                && let Some((before, from)) = self.expression.split_at_checked(failed.start)
            {
                let head = before.rsplit('\n').next().unwrap_or_default();
                let tail = from.lines().next().unwrap_or_default();
                let part = tail.get(..failed.len()).unwrap_or(tail);
                line("", &format_args!("| {head}{tail}"));
                let (before, marks) = (head.chars().count(), part.chars().count().max(1));
                line("", &format_args!("| {}{}", ".".repeat(before), "^".repeat(marks)));
            }
        }
        if let Some(result_type) = &self.result_type {
            line("type", result_type);
        }
        if let Some(cost) = self.cost {
            line("cost", &self::cost(cost));
        }
        if let Some(error) = &self.compile_error {
            let name = if self.value.is_some() || self.run_error.is_some() { "note" } else { "error" };
            let why = if name == "note" { "not a match condition: " } else { "" };
            line(name, &format_args!("{why}{}", error.replace('\n', "\n         ")));
        }
        let width =
            self.each.iter().map(|each| one_line(&each.expression).chars().count()).max().unwrap_or_default();
        for each in &self.each {
            let times = if each.times == 1 { String::new() } else { format!(", {} times", each.times) };
            let value = match (&each.value, &each.run_error) {
                (Some(value), _) => value.to_string(),
                (None, error) => format!("error: {}", error.as_deref().unwrap_or_default()),
            };
            let (expr, value) = (OneLine(&each.expression), OneLine(value));
            let _ = writeln!(text, "    {expr:<width$}  {value}  (cost {}{times})", each.cost);
        }
        text
    }
}

/// Returns the bytes of the expression that an error is about: the missing key, or else the whole part that failed.
fn failed_part(failed: &Observation<'_>, error: &Error) -> Range<usize> {
    let whole = failed.start..failed.start + failed.text.len();
    let message = error.to_string();
    let Some(key) = message.strip_prefix("no such key: ") else { return whole };
    // The part can be a path such as `object.metadata.labels.app`, in which any field may be missing.
    let is_field = |at: &usize| {
        let (before, after) = (failed.text.get(..*at), failed.text.get(at + key.len()..));
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        before.is_some_and(|text| text.ends_with('.')) && after.is_some_and(|text| !text.starts_with(is_name))
    };
    match failed.text.match_indices(key).map(|(at, _)| at).find(is_field) {
        Some(at) => failed.start + at..failed.start + at + key.len(),
        None => whole,
    }
}

/// Returns the evaluated parts.
///
/// The cost of a part is the increase in the total cost since the observation of the part's last operand.
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
        if let Some((_, known)) = each.iter_mut().find(|(at, known)| at == start && known.expression == *text)
        {
            known.times += 1;
            known.cost += own;
            (known.value, known.run_error) = (value, run_error);
        } else {
            let expression = (*text).to_owned();
            each.push((*start, Each { expression, times: 1, value, run_error, cost: own }));
        }
    }
    each.into_iter().map(|(_, each)| each).collect()
}

/// Formats the cost with its share of the limit.
pub(super) fn cost(cost: u64) -> String {
    format!("{cost} of {COST_LIMIT} ({})", share(cost))
}

/// Formats the cost as a share of the limit.
fn share(cost: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    let percent = cost as f64 * 100.0 / COST_LIMIT as f64;
    if percent < 0.1 { "less than 0.1 %".to_owned() } else { format!("{percent:.1} %") }
}

/// Converts the value to JSON, or to a string if JSON cannot represent it.
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
