//! A structural schema, parsed.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubernetes_cel::regexp::Regexp;
use serde_json::{Number, Value};

/// A schema of one value and of what is in it. The alternatives in `allOf`, `anyOf`, `oneOf` and `not` are schemas, too, of
/// which only what validates counts.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/structural.go; kube-openapi pkg/validation/spec, `Schema`.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a schema has these flags")]
pub(crate) struct Schema {
    /// `type`; empty if there is none.
    pub(crate) kind: String,
    /// `x-kubernetes-int-or-string`, which is of both types.
    pub(crate) int_or_string: bool,
    pub(crate) nullable: bool,
    /// `default`, without what the schema does not have.
    pub(crate) default: Option<Value>,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub(crate) preserve_unknown_fields: bool,
    /// `x-kubernetes-embedded-resource`.
    pub(crate) embedded_resource: bool,
    /// `x-kubernetes-list-type`.
    pub(crate) list_type: ListType,
    /// `x-kubernetes-list-map-keys`.
    pub(crate) list_map_keys: Vec<String>,
    /// `x-kubernetes-map-type: atomic`.
    pub(crate) is_atomic: bool,
    /// `format`, whether or not it has a meaning for the type.
    pub(crate) given_format: String,
    /// What is in the schema and in those of its parts, so that no walk enters what has nothing for it.
    pub(crate) within: Within,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) properties: BTreeMap<String, Schema>,
    pub(crate) additional: Additional,
    pub(crate) values: Option<Box<ValueValidation>>,
}

/// What a schema or one of its parts has, alternatives aside.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Within {
    /// A default.
    pub(crate) defaults: bool,
    /// An object inside of an object.
    pub(crate) resources: bool,
    /// A list whose items are unique, or the keys of them.
    pub(crate) unique_lists: bool,
}

/// `additionalProperties`.
#[derive(Clone, Debug, Default)]
pub(crate) enum Additional {
    /// There is none.
    #[default]
    Absent,
    /// A boolean.
    Flag(bool),
    /// Their schema.
    Schema(Box<Schema>),
}

/// The lists that are compared by their items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    #[default]
    Atomic,
    Set,
    Map,
}

/// What only validates a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValueValidation {
    /// `format`, unless it has no meaning for the type.
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

/// `pattern`.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    pub(crate) regexp: Regexp,
}

impl Schema {
    /// Sets [`Schema::within`], of whose parts it is known.
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

    /// The types that values may have; none if there is no restriction.
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

    /// The schema of a member of an object; none for one that is not described.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        match (self.properties.get(name), &self.additional) {
            (Some(property), _) => Some(property),
            (None, Additional::Schema(values)) => Some(values),
            (None, Additional::Absent | Additional::Flag(_)) => None,
        }
    }

    /// Whether `null` stands for no value at all.
    pub(crate) fn forbids_null(&self) -> bool {
        !self.nullable
    }
}
