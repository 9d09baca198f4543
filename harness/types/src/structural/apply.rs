//! Describes custom resources for server-side apply.
//!
//! Source: apiextensions-apiserver pkg/controller/openapi/builder/builder.go; kube-openapi pkg/schemaconv.

use kubernetes_managed_fields::{self as managed_fields, Atom, ListType, MapType, Relation, Scalar};
use serde_json::Value;

use super::node::{self, Additional, Schema};
use crate::schema::{self, Type};

/// A built-in type, or a type that a structural schema describes.
#[derive(Clone, Copy, Debug)]
pub enum AppliedType<'a> {
    /// A built-in type, such as the type of metadata.
    Server(Type),
    /// A part of a custom resource.
    Custom(CustomType<'a>),
}

/// A type that a structural schema describes.
#[derive(Clone, Copy, Debug)]
pub struct CustomType<'a> {
    schema: &'a Schema,
    /// Whether unspecified fields are preserved, at any depth.
    preserves: bool,
    /// Whether the value has `apiVersion`, `kind`, and `metadata`.
    is_object: bool,
}

/// Converts a built-in type to an [`AppliedType`].
pub(crate) fn from_built_in<'a>(of: managed_fields::Type<Type>) -> managed_fields::Type<AppliedType<'a>> {
    match of {
        managed_fields::Type::Declared(of) => managed_fields::Type::Declared(AppliedType::Server(of)),
        managed_fields::Type::Deduced => managed_fields::Type::Deduced,
        managed_fields::Type::Untyped => managed_fields::Type::Untyped,
    }
}

impl<'a> AppliedType<'a> {
    /// Returns the type for objects with this root schema. If the schema is empty, objects may have any fields.
    pub(super) fn for_root(schema: &'a Schema) -> managed_fields::Type<Self> {
        if schema.kind.is_empty() && schema.properties.is_empty() {
            return managed_fields::Type::Deduced;
        }
        let preserves = schema.preserve_unknown_fields;
        let root = CustomType { schema, preserves, is_object: true };
        managed_fields::Type::Declared(Self::Custom(root))
    }

    /// Returns the type for objects of the built-in type `of`; for [`Type::Free`], the type is deduced from values.
    pub fn for_kind(of: Type) -> managed_fields::Type<Self> {
        from_built_in(schema::applied(of))
    }
}

impl<'a> CustomType<'a> {
    fn child(self, schema: &'a Schema) -> managed_fields::Type<AppliedType<'a>> {
        let preserves = self.preserves || schema.preserve_unknown_fields;
        let is_object = schema.embedded_resource;
        managed_fields::Type::Declared(AppliedType::Custom(Self { schema, preserves, is_object }))
    }

    fn list(self) -> ListType<AppliedType<'a>> {
        let relation = match self.schema.list_type {
            node::ListType::Atomic => Relation::Atomic,
            node::ListType::Set => Relation::Set,
            node::ListType::Map => Relation::Keyed,
        };
        let items = self.schema.items.as_deref();
        let element = items.map_or(managed_fields::Type::Untyped, |items| self.child(items));
        ListType { element, relation }
    }

    fn map(self) -> MapType<AppliedType<'a>> {
        let has_fields = self.is_object || !self.schema.properties.is_empty();
        let element = match &self.schema.additional {
            Additional::Absent if self.preserves || !has_fields => Some(managed_fields::Type::Deduced),
            Additional::Absent | Additional::Flag(false) => None,
            Additional::Flag(true) => Some(managed_fields::Type::Deduced),
            Additional::Schema(values) => Some(self.child(values)),
        };
        MapType { element, is_atomic: self.schema.is_atomic, has_fields }
    }

    fn atom(self) -> Atom<AppliedType<'a>> {
        let kind = if self.schema.int_or_string { "" } else { self.schema.kind.as_str() };
        match kind {
            "object" => Atom::from_map(self.map()),
            "array" => Atom::from_list(self.list()),
            "integer" | "number" => Atom::from_scalar(Scalar::Numeric),
            "boolean" => Atom::from_scalar(Scalar::Boolean),
            "string" if ["", "byte"].contains(&self.schema.given_format.as_str()) => {
                Atom::from_scalar(Scalar::String)
            }
            "string" => Atom::from_scalar(Scalar::Untyped),
            _ => Atom { scalar: Some(Scalar::Untyped), list: Some(self.list()), map: Some(self.map()) },
        }
    }

    fn field(self, name: &str) -> Option<managed_fields::Type<AppliedType<'a>>> {
        match name {
            "metadata" if self.is_object => Some(from_built_in(schema::applied(Type::for_metadata()))),
            "apiVersion" | "kind" if self.is_object => {
                Some(from_built_in(schema::applied(Type::ApiVersionOrKind)))
            }
            name => self.schema.properties.get(name).map(|property| self.child(property)),
        }
    }
}

impl managed_fields::Schema for AppliedType<'_> {
    fn atom(self) -> Atom<Self> {
        match self {
            Self::Custom(custom) => custom.atom(),
            Self::Server(of) => {
                let Atom { scalar, list, map } = of.atom();
                let list = list.map(|ListType { element, relation }| {
                    let element = from_built_in(element);
                    ListType { element, relation }
                });
                let map = map.map(|MapType { element, is_atomic, has_fields }| {
                    let element = element.map(from_built_in);
                    MapType { element, is_atomic, has_fields }
                });
                Atom { scalar, list, map }
            }
        }
    }

    fn field(self, name: &str) -> Option<managed_fields::Type<Self>> {
        match self {
            Self::Custom(custom) => custom.field(name),
            Self::Server(of) => managed_fields::Schema::field(of, name).map(from_built_in),
        }
    }

    fn field_default(self, name: &str) -> Option<Value> {
        match self {
            Self::Custom(custom) => custom.schema.properties.get(name)?.default.clone(),
            Self::Server(of) => of.field_default(name),
        }
    }

    fn keys(&self) -> Vec<&str> {
        match self {
            Self::Custom(custom) => custom.schema.list_map_keys.iter().map(String::as_str).collect(),
            Self::Server(of) => managed_fields::Schema::keys(of),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Compiled;
    use super::*;

    fn at<'a>(compiled: &'a Compiled, path: &[&str]) -> managed_fields::Type<AppliedType<'a>> {
        let mut of = compiled.applied_type();
        for name in path {
            let managed_fields::Type::Declared(declared) = of else { panic!("{name} is below no struct") };
            let atom = managed_fields::Schema::atom(declared);
            of = match (*name, atom.list) {
                ("*", Some(list)) => list.element,
                (name, _) => managed_fields::Schema::field(declared, name)
                    .or(atom.map.and_then(|map| map.element))
                    .unwrap_or_else(|| panic!("{name} is not declared")),
            };
        }
        of
    }

    fn atom<'a>(compiled: &'a Compiled, path: &[&str]) -> Atom<AppliedType<'a>> {
        let of = at(compiled, path);
        let managed_fields::Type::Declared(declared) = of else { panic!("{path:?} is {of:?}") };
        managed_fields::Schema::atom(declared)
    }

    #[test]
    fn a_structural_schema_determines_list_and_map_types() {
        let compiled = Compiled::new(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "plain": {"type": "array", "items": {"type": "string"}},
            "map": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
                "items": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}, "b": {"type": "integer"}}},
            },
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"deep": {"type": "object", "properties": {"a": {"type": "string"}}}}},
            "port": {"x-kubernetes-int-or-string": true},
            "time": {"type": "string", "format": "date-time"},
        }}}})).unwrap();
        let relation = |name| atom(&compiled, &["spec", name]).list.unwrap().relation;
        assert_eq!(relation("set"), Relation::Set);
        assert_eq!(relation("plain"), Relation::Atomic);
        assert_eq!(relation("map"), Relation::Keyed);
        let managed_fields::Type::Declared(map) = at(&compiled, &["spec", "map"]) else { panic!("no list") };
        assert_eq!(managed_fields::Schema::keys(&map), ["a", "b"]);
        let managed_fields::Type::Declared(item) = at(&compiled, &["spec", "map", "*"]) else {
            panic!("no item")
        };
        assert_eq!(managed_fields::Schema::field_default(item, "a"), Some(json!("x")));
        assert!(atom(&compiled, &["spec", "whole"]).map.unwrap().is_atomic);
        assert!(atom(&compiled, &["spec"]).map.unwrap().element.is_none());
        // Preserved fields are preserved at any depth.
        let deep = atom(&compiled, &["spec", "free", "deep"]).map.unwrap();
        assert!(matches!(deep.element, Some(managed_fields::Type::Deduced)));
        assert!(atom(&compiled, &["spec", "port"]).list.is_some());
        assert_eq!(atom(&compiled, &["spec", "time"]).scalar, Some(Scalar::Untyped));
        let labels = atom(&compiled, &["metadata", "labels"]);
        assert!(matches!(labels.map.unwrap().element, Some(managed_fields::Type::Declared(_))));
    }
}
