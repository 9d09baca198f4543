//! Label and field selectors in a query.

use std::cmp::Ordering;
use std::sync::Arc;

use kubernetes_types::names;
use kubernetes_types::quoting::quote;
use kubernetes_types::selector::{Labels, Selector};
use kubernetes_types::status::{FieldError, Status};
use serde_json::Value;

use super::state::State;
use crate::apimachinery::label_syntax;
use crate::apimachinery::query::Query;
use crate::kinds::built_in_fields::{EVENT_SOURCE, pointer, selectable, unset};
use crate::kinds::discovery::Resource;
use crate::storage::StoredObject;

/// The selectors of a query.
#[derive(Debug)]
pub(crate) struct Selection {
    labels: LabelSelector,
    fields: Vec<FieldRequirement>,
}

/// The parsed selectors of a query, before their fields are checked against a resource.
pub(crate) struct Selectors<'q> {
    labels: LabelSelector,
    fields: Vec<(&'q str, bool, String)>,
}

impl<'q> Selectors<'q> {
    /// Parses `labelSelector` and `fieldSelector`.
    ///
    /// # Errors
    /// Returns 400 for an invalid selector.
    ///
    /// Source: apimachinery pkg/apis/meta/internalversion/conversion.go,
    /// `Convert_v1_ListOptions_To_internalversion_ListOptions`.
    /// Rule: LST-12.
    pub(crate) fn parse(query: &'q Query) -> Result<Self, Box<Status>> {
        Ok(Self {
            labels: label_selector(query.first("labelSelector").unwrap_or_default())?,
            fields: field_terms(query.first("fieldSelector").unwrap_or_default())?,
        })
    }

    /// Checks the selected fields against `resource` and returns the selection.
    ///
    /// # Errors
    /// Returns 400 for fields that cannot be selected.
    pub(crate) fn for_resource(self, resource: &Resource) -> Result<Selection, Box<Status>> {
        let fields = self.fields.into_iter().map(|(path, equal, value)| {
            check_field(path, resource)?;
            Ok(FieldRequirement { pointer: pointer(resource, path), equal, value })
        });
        Ok(Selection { labels: self.labels, fields: fields.collect::<Result<_, Box<Status>>>()? })
    }
}

impl Selection {
    /// Returns whether the selection matches every object.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Returns whether the query has a field selector.
    pub(crate) fn has_fields(&self) -> bool {
        !self.fields.is_empty()
    }

    /// Returns the name that matching objects must have; `None` if any name matches.
    ///
    /// Source: apiserver `pkg/storage/selection_predicate.go`, `MatchesSingle`.
    pub(crate) fn name(&self) -> Option<&str> {
        self.only("/metadata/name")
    }

    /// Returns the namespace that matching objects must have; `None` if any namespace matches or the name is invalid.
    ///
    /// Source: apiserver `pkg/storage/selection_predicate.go`, `MatchesSingleNamespace`.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.only("/metadata/namespace").filter(|name| is_name_of_namespace(name))
    }

    fn only(&self, pointer: &str) -> Option<&str> {
        let found = self.fields.iter().find(|field| field.equal && field.pointer == pointer);
        found.map(|field| field.value.as_str())
    }

    /// Returns whether an object matches. The object must be in the version in the request path.
    pub(crate) fn matches_converted(&self, object: &Value) -> bool {
        self.labels.matches(object) && self.fields.iter().all(|field| field.matches(object))
    }

    /// Returns whether matching depends on the version of an object.
    pub(crate) fn looks_at_version(&self) -> bool {
        !self.fields.iter().all(FieldRequirement::is_of_metadata)
    }

    /// Returns whether a stored object matches, without calling a conversion webhook.
    ///
    /// Selected fields refer to the version of `resource`.
    ///
    /// Rule: SCH-16.
    pub(crate) fn matches(&self, stored: &StoredObject, state: &State, resource: &Resource) -> bool {
        self.is_everything() || self.matches_object(&stored.object(), state, resource)
    }

    fn matches_object(&self, stored: &Arc<Value>, state: &State, resource: &Resource) -> bool {
        if !self.labels.matches(stored) {
            return false;
        }
        if resource.custom.is_none() || !self.looks_at_version() {
            return self.fields.iter().all(|field| field.matches(stored));
        }
        // Conversion errors are reported when the object is returned.
        let Ok(object) = state.in_version_of_at_once(stored, resource) else { return true };
        self.fields.iter().all(|field| field.matches(&object))
    }
}

/// Returns whether a name is a valid DNS-1123 label.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsDNS1123Label`.
fn is_name_of_namespace(name: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len())
        && name.bytes().all(is_known)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

#[derive(Debug)]
struct FieldRequirement {
    /// The JSON pointer to the field.
    pointer: String,
    equal: bool,
    value: String,
}

impl FieldRequirement {
    fn is_of_metadata(&self) -> bool {
        self.pointer.starts_with("/metadata/")
    }

    fn matches(&self, object: &Value) -> bool {
        let found = match object.pointer(&self.pointer) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Bool(truth)) => truth.to_string(),
            Some(Value::Number(number)) => number.to_string(),
            // An Event without a source has the reporting component as its source.
            None if self.pointer == EVENT_SOURCE => {
                let reporter = object.get("reportingComponent").and_then(Value::as_str);
                reporter.unwrap_or_default().to_owned()
            }
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => unset(&self.pointer).to_owned(),
        };
        (found == self.value) == self.equal
    }
}

/// Parses a field selector such as `a=b,c==d,e!=f`. A backslash escapes a comma, an equals sign, or a backslash.
///
/// Source: apimachinery pkg/fields/selector.go, `parseSelector`.
/// Rule: KND-12.
fn field_terms(text: &str) -> Result<Vec<(&str, bool, String)>, Box<Status>> {
    let mut terms = split_terms(text);
    terms.sort_unstable();
    let mut requirements = Vec::new();
    for term in terms.into_iter().filter(|term| !term.is_empty()) {
        let Some((path, operator, value)) = split_at_operator(term) else {
            let message = format!("invalid selector: '{text}'; can't understand '{term}'");
            return Err(Box::new(Status::bad_request(message)));
        };
        let value = unescaped(value).map_err(|message| Box::new(Status::bad_request(message)))?;
        requirements.push((path, operator != "!=", value));
    }
    Ok(requirements)
}

/// Checks that a field can be selected.
///
/// # Errors
/// Returns 400 if the resource does not support selecting the field.
///
/// Source: apimachinery pkg/runtime/conversion.go, `DefaultMetaV1FieldSelectorConversion`; apiextensions-apiserver
/// pkg/apiserver/conversion/converter.go, `ConvertFieldLabel`.
/// Rule: SCH-16.
fn check_field(path: &str, resource: &Resource) -> Result<(), Box<Status>> {
    let group_resource = resource.gvr.group_resource();
    let known = selectable(resource);
    let is_known = if let Some(custom) = &resource.custom {
        path == "metadata.name"
            || (path == "metadata.namespace" && resource.namespaced)
            || custom.selectable.iter().any(|field| field == path)
    } else {
        known.unwrap_or(&["metadata.name", "metadata.namespace"]).contains(&path)
    };
    if is_known {
        return Ok(());
    }
    let kind = &resource.kind;
    Err(Box::new(Status::bad_request(match group_resource.as_str() {
        "jobs.batch" => format!("field label {} not supported for Job", Value::from(path)),
        "resourceslices.resource.k8s.io" => {
            format!("field label not supported for {}, Kind={}: {path}", kind.api_version(), kind.kind)
        }
        _ if resource.custom.is_some() || known.is_some() => format!("field label not supported: {path}"),
        _ => {
            let path = Value::from(path);
            format!("{path} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        }
    })))
}

/// Splits a field selector at unescaped commas.
fn split_terms(text: &str) -> Vec<&str> {
    let mut is_escaped = false;
    text.split(|character: char| {
        let splits = character == ',' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        splits
    })
    .collect()
}

/// Splits a term at its first operator into field, operator, and value.
fn split_at_operator(term: &str) -> Option<(&str, &str, &str)> {
    term.char_indices().find_map(|(at, _)| {
        let (path, rest) = term.split_at_checked(at)?;
        let operator = ["!=", "==", "="].into_iter().find(|operator| rest.starts_with(operator))?;
        Some((path, operator, rest.strip_prefix(operator)?))
    })
}

/// Removes the escapes from the value in a field selector.
///
/// Source: apimachinery pkg/fields/selector.go, `UnescapeValue`.
fn unescaped(value: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    let sequence: String = ['\\'].into_iter().chain(other).collect();
                    return Err(format!("invalid field selector: invalid escape sequence: {sequence}"));
                }
            },
            ',' | '=' => {
                return Err(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(character)
                ));
            }
            _ => plain.push(character),
        }
    }
    Ok(plain)
}

/// A label selector in query syntax.
#[derive(Debug)]
pub(crate) struct LabelSelector {
    labels: Selector,
    comparisons: Vec<Comparison>,
}

/// A requirement of a label selector that compares numbers.
#[derive(Debug)]
struct Comparison {
    key: String,
    /// The required ordering of the label value relative to the number.
    ordering: Ordering,
    number: i64,
}

impl LabelSelector {
    fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.comparisons.is_empty()
    }

    fn matches(&self, object: &Value) -> bool {
        (self.labels.is_empty() || self.labels.matches(Labels::from_object(object).unwrap_or_default()))
            && self.comparisons.iter().all(|comparison| comparison.holds(object))
    }
}

impl Comparison {
    /// Parses a comparison such as `a>1` or `a<1`; returns `None` for other requirements.
    fn parse(term: &str) -> Option<Result<Self, String>> {
        let at = term.find(['<', '>'])?;
        let (key, rest) = term.split_at_checked(at)?;
        let ordering = if rest.starts_with('<') { Ordering::Less } else { Ordering::Greater };
        let (key, number) = (key.trim(), rest.get(1..)?.trim());
        let read = number.parse::<i64>();
        let wrongs = names::label_value(number);
        let mut errors = Vec::new();
        if read.is_err() {
            let why = "for 'Gt', 'Lt' operators, the value must be an integer";
            errors.push(FieldError::invalid("values[0]", quote(number), why).to_string());
        }
        if !wrongs.is_empty() {
            let path = format!("values[0][{key}]");
            errors.push(FieldError::invalid(path, quote(number), wrongs.join("; ")).to_string());
        }
        Some(match (read, errors.as_slice()) {
            (Ok(number), []) => Ok(Self { key: key.to_owned(), ordering, number }),
            (_, [one]) => Err(one.clone()),
            (_, several) => Err(format!("[{}]", several.join(", "))),
        })
    }

    /// Returns whether the label of an object satisfies the comparison.
    ///
    /// Source: apimachinery pkg/labels/selector.go, `Requirement.Matches`.
    fn holds(&self, object: &Value) -> bool {
        let labels = object.get("metadata").and_then(|metadata| metadata.get("labels"));
        let label = labels.and_then(|labels| labels.get(&self.key)).and_then(Value::as_str);
        label
            .and_then(|label| label.parse::<i64>().ok())
            .is_some_and(|it| it.cmp(&self.number) == self.ordering)
    }
}

/// Parses a label selector such as `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1,m<1`.
///
/// Source: apimachinery pkg/labels/selector.go, `Parse`.
/// Rule: LST-09.
pub(crate) fn label_selector(text: &str) -> Result<LabelSelector, Box<Status>> {
    let wrong =
        |error: String| Box::new(Status::bad_request(format!("unable to parse requirement: {error}")));
    label_syntax::check(text).map_err(|error| Box::new(Status::bad_request(error)))?;
    let mut comparisons = Vec::new();
    let mut expressions = Vec::new();
    let mut expression = |key: &str, operator: &str, values: Vec<&str>| {
        expressions.push(serde_json::json!({"key": key.trim(), "operator": operator, "values": values}));
    };
    for term in terms(text) {
        if let Some(comparison) = Comparison::parse(term) {
            let comparison = comparison.map_err(wrong)?;
            expression(&comparison.key, "Exists", vec![]);
            comparisons.push(comparison);
            continue;
        }
        let set = |word: &str| {
            let (key, rest) = term.split_once(word)?;
            let values = rest.trim().strip_prefix('(')?.strip_suffix(')')?;
            Some((key, values.split(',').map(str::trim).collect::<Vec<_>>()))
        };
        if let Some((key, values)) = set(" notin ").or_else(|| set(" notin")) {
            expression(key, "NotIn", values);
        } else if let Some((key, values)) = set(" in ").or_else(|| set(" in")) {
            expression(key, "In", values);
        } else if let Some((key, value)) = term.split_once("!=") {
            expression(key, "NotIn", vec![value.trim()]);
        } else if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
            expression(key, "In", vec![value.trim()]);
        } else if let Some(key) = term.strip_prefix('!') {
            expression(key, "DoesNotExist", vec![]);
        } else {
            expression(term, "Exists", vec![]);
        }
    }
    let labels = Selector::parse(&serde_json::json!({"matchExpressions": expressions}));
    Ok(LabelSelector { labels: labels.map_err(|error| wrong(error.to_string()))?, comparisons })
}

/// Splits a label selector at commas outside parentheses.
fn terms(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|term| !term.is_empty())
    .collect()
}
