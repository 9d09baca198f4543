//! Structural schemas: OpenAPI v3 in custom resource definitions.
//!
//! A [`Schema`] is parsed once. [`Schema::declared_type`] returns the type for the checker and the cost
//! estimate; [`Value::from_structured`](crate::value::Value::from_structured) reads a JSON document through
//! it.
//!
//! Source: apiextensions-apiserver pkg/apiserver/schema.

mod duration;
mod escape;
mod format;
mod parse;

use std::collections::BTreeMap;

use serde_json::Value as Json;

pub(crate) use duration::parse_duration;
pub use escape::{escape, is_keyword, unescape};
pub use format::{has_format, is_known_format};
pub use parse::SchemaError;

/// A structural schema. Keywords that only validate values, such as `pattern` and `allOf`, are not kept.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/structural.go and cel/model/adaptor.go.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) kind: Kind,
    pub(crate) format: String,
    pub(crate) nullable: bool,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) properties: BTreeMap<String, Schema>,
    pub(crate) additional_properties: Option<Box<Schema>>,
    pub(crate) required: Vec<String>,
    pub(crate) values: Vec<Json>,
    pub(crate) has_default: bool,
    pub(crate) max_length: Option<i64>,
    pub(crate) max_items: Option<i64>,
    pub(crate) max_properties: Option<i64>,
    pub(crate) list_type: ListType,
}

/// The kind of a schema's values: its `type`, unless an extension sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Number,
    Integer,
    Boolean,
    /// An integer or a string, as `x-kubernetes-int-or-string` specifies.
    IntOrString,
    /// Any value, as `x-kubernetes-preserve-unknown-fields` without a type specifies.
    Preserved,
    /// A schema without a type, or with a type that OpenAPI does not define.
    Other(String),
}

/// The `x-kubernetes-list-type` of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListType {
    Atomic,
    Set,
    /// `map`, with the `x-kubernetes-list-map-keys`, escaped for expressions where possible.
    ///
    /// kube-apiserver looks for the escaped names in documents, too.
    Map(Vec<String>),
    Other(String),
}

/// The maximum length of an object's name.
///
/// Source: apimachinery pkg/util/validation/validation.go, `DNS1123SubdomainMaxLength`.
const DNS1123_SUBDOMAIN_MAX_LENGTH: i64 = 253;

impl Schema {
    /// Creates a schema without constraints.
    fn of_kind(kind: Kind) -> Self {
        Self {
            kind,
            format: String::new(),
            nullable: false,
            items: None,
            properties: BTreeMap::new(),
            additional_properties: None,
            required: Vec::new(),
            values: Vec::new(),
            has_default: false,
            max_length: None,
            max_items: None,
            max_properties: None,
            list_type: ListType::Atomic,
        }
    }

    /// Converts the schema to the schema of a whole resource. Sets the properties `apiVersion`, `kind`,
    /// `metadata.name`, and `metadata.generateName`, and removes all other properties of `metadata`. If all four
    /// properties are declared, the schema stays unchanged.
    ///
    /// Source: apiextensions-apiserver pkg/apiserver/schema/cel/model/schemas.go, `WithTypeAndObjectMeta`.
    #[must_use]
    pub fn of_resource(mut self) -> Self {
        let metadata = self.properties.get("metadata");
        let is_text = |property: Option<&Self>| property.is_some_and(|it| it.kind == Kind::String);
        let is_complete = is_text(self.properties.get("kind"))
            && is_text(self.properties.get("apiVersion"))
            && metadata.is_some_and(|metadata| {
                metadata.kind == Kind::Object
                    && is_text(metadata.properties.get("name"))
                    && is_text(metadata.properties.get("generateName"))
            });
        if is_complete {
            return self;
        }
        let name = |name: &str, longest: i64| {
            let declared = metadata.and_then(|metadata| metadata.properties.get(name)?.max_length);
            let max_length = declared.map_or(longest, |declared| declared.min(longest));
            (name.to_owned(), Self { max_length: Some(max_length), ..Self::of_kind(Kind::String) })
        };
        // At least one character is added to a generated name.
        let names = [
            name("name", DNS1123_SUBDOMAIN_MAX_LENGTH),
            name("generateName", DNS1123_SUBDOMAIN_MAX_LENGTH - 1),
        ];
        let metadata = Self { properties: names.into(), ..Self::of_kind(Kind::Object) };
        self.properties.insert("metadata".to_owned(), metadata);
        for text in ["kind", "apiVersion"] {
            self.properties.insert(text.to_owned(), Self::of_kind(Kind::String));
        }
        self
    }

    /// Returns whether values are objects with declared properties, as opposed to maps.
    pub(crate) fn has_properties(&self) -> bool {
        !self.properties.is_empty()
    }

    /// Returns the schema of an object's member by its JSON name, or `None` if the schema does not contain the member.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        if self.has_properties() { self.properties.get(name) } else { self.additional_properties.as_deref() }
    }
}
