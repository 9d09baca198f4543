//! Defines a parsed structural schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubernetes_cel::regexp::Regexp;
use serde_json::{Number, Value};

use crate::path::{self, Segment};

/// The schema of a value and of its parts.
///
/// The alternatives in `allOf`, `anyOf`, `oneOf`, and `not` are also schemas, but are only used for validation.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/structural.go; kube-openapi pkg/validation/spec, `Schema`.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a schema has these flags")]
pub(crate) struct Schema {
    /// The value of `type`, or an empty string if the schema does not have a type.
    pub(crate) kind: String,
    /// Whether the value is an integer or a string: `x-kubernetes-int-or-string`.
    pub(crate) int_or_string: bool,
    pub(crate) nullable: bool,
    /// The value of `default`, without unknown fields.
    pub(crate) default: Option<Value>,
    /// Whether unknown fields are kept: `x-kubernetes-preserve-unknown-fields`.
    pub(crate) preserve_unknown_fields: bool,
    /// Whether the value is a complete object with metadata: `x-kubernetes-embedded-resource`.
    pub(crate) embedded_resource: bool,
    /// How list items are compared: `x-kubernetes-list-type`.
    pub(crate) list_type: ListType,
    /// The fields that identify list items: `x-kubernetes-list-map-keys`.
    pub(crate) list_map_keys: Vec<String>,
    /// Whether a map is treated as a single value: `x-kubernetes-map-type: atomic`.
    pub(crate) is_atomic: bool,
    /// The value of `format`, even if it is meaningless for the type.
    pub(crate) given_format: String,
    /// The features that the schema and its parts use, so that irrelevant parts can be skipped.
    pub(crate) within: Within,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) properties: BTreeMap<String, Schema>,
    pub(crate) additional: Additional,
    pub(crate) values: Option<Box<ValueValidation>>,
}

impl Schema {
    /// Returns the schema of the value at `path`, such as `spec.parts[0]`, if the schema describes it.
    pub(crate) fn at(&self, path: &str) -> Option<&Self> {
        path::segments(path).try_fold(self, |schema, segment| match segment {
            Segment::Item => schema.items.as_deref(),
            Segment::Member(name) => schema.properties.get(name).or(match &schema.additional {
                Additional::Schema(values) => Some(&**values),
                Additional::Absent | Additional::Flag(_) => None,
            }),
        })
    }
}

/// The features that a schema and its parts use. Alternatives are not included.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Within {
    /// Whether any part has a default.
    pub(crate) defaults: bool,
    /// Whether any part is an embedded object.
    pub(crate) resources: bool,
    /// Whether any part is a list with unique items or keys.
    pub(crate) unique_lists: bool,
}

/// The value of `additionalProperties`.
#[derive(Clone, Debug, Default)]
pub(crate) enum Additional {
    /// The field is missing.
    #[default]
    Absent,
    /// A boolean: whether additional properties are allowed.
    Flag(bool),
    /// The schema of the additional properties.
    Schema(Box<Schema>),
}

/// The value of `x-kubernetes-list-type`. It determines how items are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    #[default]
    Atomic,
    Set,
    Map,
}

/// The fields of a schema that only validate a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValueValidation {
    /// `format`, unless it is meaningless for the type.
    pub(crate) format: String,
    pub(crate) maximum: Option<Number>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) minimum: Option<Number>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) multiple_of: Option<Number>,
    pub(crate) max_length: Option<i64>,
    pub(crate) min_length: Option<i64>,
    pub(crate) pattern: Option<Arc<Pattern>>,
    pub(crate) max_items: Option<i64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) unique_items: bool,
    pub(crate) max_properties: Option<i64>,
    pub(crate) min_properties: Option<i64>,
    pub(crate) required: Vec<String>,
    pub(crate) values: Vec<Value>,
    pub(crate) all_of: Vec<Schema>,
    pub(crate) any_of: Vec<Schema>,
    pub(crate) one_of: Vec<Schema>,
    pub(crate) not: Option<Box<Schema>>,
}

/// A `pattern` with its compiled regular expression.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    pub(crate) regexp: Regexp,
}

impl Schema {
    /// Sets [`Schema::within`] from the schema and its parts. [`Schema::within`] of the parts must already be set.
    pub(crate) fn look_within(&mut self) {
        let mut within = Within {
            defaults: self.default.is_some(),
            resources: self.embedded_resource,
            unique_lists: self.list_type != ListType::Atomic,
        };
        let values = if let Additional::Schema(values) = &self.additional { Some(values) } else { None };
        let parts = self.properties.values().chain(self.items.as_deref()).chain(values.map(Box::as_ref));
        for part in parts {
            within.defaults |= part.within.defaults;
            within.resources |= part.within.resources;
            within.unique_lists |= part.within.unique_lists;
        }
        self.within = within;
    }

    /// Returns the types that values may have; empty if values may have any type.
    pub(crate) fn types(&self) -> &[&str] {
        if self.int_or_string {
            return &["integer", "string"];
        }
        match self.kind.as_str() {
            "object" => &["object"],
            "array" => &["array"],
            "string" => &["string"],
            "number" => &["number"],
            "integer" => &["integer"],
            "boolean" => &["boolean"],
            _ => &[],
        }
    }

    /// Returns the schema of the member `name`; `None` if the schema does not describe the member.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        match (self.properties.get(name), &self.additional) {
            (Some(property), _) => Some(property),
            (None, Additional::Schema(values)) => Some(values),
            (None, Additional::Absent | Additional::Flag(_)) => None,
        }
    }

    /// Returns whether the schema is not nullable, so that null represents an absent value.
    pub(crate) fn forbids_null(&self) -> bool {
        !self.nullable
    }
}
