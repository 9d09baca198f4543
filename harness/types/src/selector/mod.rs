//! Parses and matches label selectors: `metav1.LabelSelector`.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::names;
use crate::quoting::quote;
use crate::status::FieldError;

/// The labels of an object, from `metadata.labels`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Labels<'a>(Option<&'a Map<String, Value>>);

impl<'a> Labels<'a> {
    /// Returns the labels of `object`; `None` if it does not have metadata, such as the options of a CONNECT.
    ///
    /// Source: apimachinery pkg/api/meta/meta.go, `Accessor`;
    /// `pkg/apis/meta/v1/unstructured/{unstructured,helpers}.go`, `NestedNullCoercingStringMap`.
    pub fn from_object(object: &'a Value) -> Option<Self> {
        let metadata = object.get("metadata")?.as_object()?;
        let labels = metadata.get("labels").and_then(Value::as_object);
        // If the value of any label is not a string or null, kube-apiserver ignores all labels.
        Some(Self(labels.filter(|labels| labels.values().all(|value| value.is_string() || value.is_null()))))
    }

    /// Returns the value of a label. A null value counts as an empty string.
    fn value(self, key: &str) -> Option<&'a str> {
        self.0?.get(key).map(|value| value.as_str().unwrap_or_default())
    }
}

/// A parsed label selector. A selector without requirements matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
    /// The reason why the server cannot evaluate a stored selector.
    error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    Equals(String),
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
}

/// The reason why a label selector is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {what}")]
pub struct SelectorError {
    /// The field's path in the selector, such as `matchExpressions[0].operator`; empty for the selector itself.
    pub field: String,
    /// The reason why the field is invalid, such as `must be a string`.
    pub what: String,
}

impl Selector {
    /// Parses a `LabelSelector`: `matchLabels` and `matchExpressions`.
    ///
    /// Source: apimachinery pkg/apis/meta/v1/helpers.go, `LabelSelectorAsSelector`.
    ///
    /// # Errors
    /// Returns [`SelectorError`] for the first invalid field.
    pub fn parse(selector: &Value) -> Result<Self, SelectorError> {
        let Value::Object(selector) = selector else {
            return Err(wrong("", "must be an object"));
        };
        let mut requirements = Vec::new();
        for (key, value) in
            optional(selector.get("matchLabels"), Value::as_object, "matchLabels", "an object")?
                .into_iter()
                .flatten()
        {
            let field = format!("matchLabels.{key}");
            let value = value.as_str().ok_or_else(|| wrong(&field, "must be a string"))?;
            check(&field, names::label_key(key))?;
            check(&field, names::label_value(value))?;
            requirements.push(Requirement { key: key.clone(), operator: Operator::Equals(value.to_owned()) });
        }
        let expressions =
            optional(selector.get("matchExpressions"), Value::as_array, "matchExpressions", "a list")?;
        for (index, expression) in expressions.into_iter().flatten().enumerate() {
            requirements.push(Requirement::parse(expression, &format!("matchExpressions[{index}]"))?);
        }
        Ok(Self { requirements, error: None })
    }

    /// Parses a stored `LabelSelector`.
    ///
    /// Label values may be invalid, because earlier versions of kube-apiserver accepted them. A selector with an
    /// invalid label value has an [error](Self::error).
    ///
    /// Source: apimachinery pkg/apis/meta/v1/helpers.go, `LabelSelectorAsSelector`, and pkg/labels/selector.go,
    /// `NewRequirement`.
    ///
    /// # Errors
    /// Returns [`SelectorError`] in the same cases as [`Self::parse`], except for invalid label values.
    pub fn parse_stored(selector: &Value) -> Result<Self, SelectorError> {
        let mut valid = selector.clone();
        let mut error = None;
        for (key, value) in valid.get_mut("matchLabels").and_then(Value::as_object_mut).into_iter().flatten()
        {
            error = error.or(replace_invalid(key, std::slice::from_mut(value)));
        }
        let expressions = valid.get_mut("matchExpressions").and_then(Value::as_array_mut);
        for expression in expressions.into_iter().flatten() {
            let key = expression.get("key").and_then(Value::as_str).unwrap_or_default().to_owned();
            let values = expression.get_mut("values").and_then(Value::as_array_mut);
            error = error.or(values.and_then(|values| replace_invalid(&key, values)));
        }
        Ok(Self { error, ..Self::parse(&valid)? })
    }

    /// Returns the server's error message if the server cannot evaluate the selector, or `None` if it can.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Returns the label keys in the selector.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.requirements.iter().map(|requirement| requirement.key.as_str())
    }

    /// Returns labels that all of `selectors` match; `None` if no such labels exist.
    ///
    /// The value for each key is chosen separately, because no requirement involves two keys.
    pub fn common_labels(selectors: &[&Self]) -> Option<BTreeMap<String, String>> {
        let mut by_key: BTreeMap<&str, Vec<&Operator>> = BTreeMap::new();
        for requirement in selectors.iter().flat_map(|selector| &selector.requirements) {
            by_key.entry(&requirement.key).or_default().push(&requirement.operator);
        }
        let mut labels = BTreeMap::new();
        for (key, operators) in by_key {
            let holds =
                |value: &Option<String>| operators.iter().all(|operator| operator.holds(value.as_deref()));
            if let Some(value) = candidates(&operators).find(holds)? {
                labels.insert(key.to_owned(), value);
            }
        }
        Some(labels)
    }

    /// Returns a label that prevents an object without other labels from matching; `None` if there is none.
    pub fn refused_label(&self) -> Option<(String, String)> {
        self.requirements.iter().find_map(|Requirement { key, operator }| {
            let value = candidates(&[operator]).flatten().find(|value| !operator.holds(Some(value)))?;
            Some((key.clone(), value))
        })
    }

    /// Returns whether `labels` satisfy every requirement.
    ///
    /// Source: apimachinery pkg/labels/selector.go, `Requirement.Matches`.
    pub fn matches(&self, labels: Labels<'_>) -> bool {
        self.requirements.iter().all(|requirement| requirement.holds(labels))
    }

    /// Returns the first requirement that `labels` do not satisfy, in the syntax of `kubectl -l`.
    ///
    /// An example is `tier in (gold,silver)`.
    pub fn refused_by(&self, labels: Labels<'_>) -> Option<String> {
        self.requirements.iter().find(|requirement| !requirement.holds(labels)).map(ToString::to_string)
    }

    /// Returns whether the selector matches everything because it does not have requirements.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

/// Formats the requirement in the syntax of `kubectl -l`: `tier in (gold,silver)`, or `tier=gold` from `matchLabels`.
///
/// Source: apimachinery pkg/labels/selector.go, `Requirement.String`.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.operator {
            Operator::Equals(value) => write!(f, "{key}={value}"),
            Operator::In(values) => write!(f, "{key} in ({})", values.join(",")),
            Operator::NotIn(values) => write!(f, "{key} notin ({})", values.join(",")),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

/// Formats the requirements in the syntax of `kubectl -l`: `tier in (gold,silver),!skip`.
///
/// Source: apimachinery pkg/labels/selector.go, `internalSelector.String`.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

/// Returns candidates for the value of a label. If any value satisfies all of `operators`, a candidate does.
/// The candidates are a missing label, each value in the operators, and one value that no operator contains.
fn candidates(operators: &[&Operator]) -> impl Iterator<Item = Option<String>> {
    let named: Vec<String> = operators
        .iter()
        .flat_map(|operator| match operator {
            Operator::Equals(value) => std::slice::from_ref(value),
            Operator::In(values) | Operator::NotIn(values) => values.as_slice(),
            Operator::Exists | Operator::DoesNotExist => &[],
        })
        .cloned()
        .collect();
    let mut others = std::iter::once("yes".to_owned()).chain((0..).map(|number| format!("yes-{number}")));
    let unnamed = others.find(|other| !named.contains(other));
    std::iter::once(None).chain(named.into_iter().map(Some)).chain(std::iter::once(unnamed))
}

impl Operator {
    fn holds(&self, value: Option<&str>) -> bool {
        match self {
            Self::Equals(expected) => value == Some(expected),
            Self::In(values) => value.is_some_and(|value| values.iter().any(|one| one == value)),
            Self::NotIn(values) => value.is_none_or(|value| values.iter().all(|one| one != value)),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
        }
    }
}

impl Requirement {
    fn holds(&self, labels: Labels<'_>) -> bool {
        self.operator.holds(labels.value(&self.key))
    }

    /// Parses an item of `matchExpressions`; `path` is the path of the item in the errors.
    ///
    /// Source: apimachinery pkg/labels/selector.go, `NewRequirement`.
    fn parse(expression: &Value, path: &str) -> Result<Self, SelectorError> {
        let Value::Object(expression) = expression else {
            return Err(wrong(path, "must be an object"));
        };
        let key_path = format!("{path}.key");
        let key = optional(expression.get("key"), Value::as_str, &key_path, "a string")?
            .ok_or_else(|| wrong(&key_path, "is required"))?;
        check(&key_path, names::label_key(key))?;
        let values_path = format!("{path}.values");
        let values = optional(expression.get("values"), Value::as_array, &values_path, "a list")?
            .map_or(&[][..], Vec::as_slice);
        let mut texts = Vec::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            let value_path = format!("{values_path}[{index}]");
            let text = value.as_str().ok_or_else(|| wrong(&value_path, "must be a string"))?;
            check(&value_path, names::label_value(text))?;
            texts.push(text.to_owned());
        }
        let operator_path = format!("{path}.operator");
        let operator = optional(expression.get("operator"), Value::as_str, &operator_path, "a string")?;
        let operator = match (operator.unwrap_or_default(), texts.is_empty()) {
            ("In", false) => Operator::In(texts),
            ("NotIn", false) => Operator::NotIn(texts),
            ("Exists", true) => Operator::Exists,
            ("DoesNotExist", true) => Operator::DoesNotExist,
            ("In" | "NotIn", true) => {
                return Err(wrong(&values_path, "must be specified when `operator` is 'In' or 'NotIn'"));
            }
            ("Exists" | "DoesNotExist", false) => {
                return Err(wrong(
                    &values_path,
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                ));
            }
            (other, _) => {
                let what = format!("\"{other}\" is not one of In, NotIn, Exists, DoesNotExist");
                return Err(wrong(&operator_path, what));
            }
        };
        Ok(Self { key: key.to_owned(), operator })
    }
}

/// Replaces invalid label values with empty strings. Returns the server's error message if any value was invalid.
fn replace_invalid(key: &str, values: &mut [Value]) -> Option<String> {
    let mut errors = Vec::new();
    for (index, value) in values.iter_mut().enumerate() {
        let Some(text) = value.as_str() else { continue };
        let wrongs = names::label_value(text);
        if !wrongs.is_empty() {
            let path = format!("values[{index}][{key}]");
            errors.push(FieldError::invalid(path, quote(text), wrongs.join("; ")).to_string());
            *value = Value::from("");
        }
    }
    match errors.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

/// Reads a field that may be missing or null.
fn optional<'a, T>(
    value: Option<&'a Value>,
    read: impl Fn(&'a Value) -> Option<T>,
    path: &str,
    expected: &str,
) -> Result<Option<T>, SelectorError> {
    value
        .filter(|value| !value.is_null())
        .map(|value| read(value).ok_or_else(|| wrong(path, format!("must be {expected}"))))
        .transpose()
}

fn check(path: &str, wrongs: Vec<String>) -> Result<(), SelectorError> {
    wrongs.into_iter().next().map_or(Ok(()), |what| Err(wrong(path, what)))
}

fn wrong(field: &str, what: impl Into<String>) -> SelectorError {
    SelectorError { field: field.to_owned(), what: what.into() }
}

#[cfg(test)]
mod tests;
