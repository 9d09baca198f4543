//! Schemas of structured-merge-diff, read from `schemas.json`.

use std::collections::BTreeMap;

use kubernetes_managed_fields::{
    Atom, ConversionError, ListType, MapType, Relation, Scalar, Schema, Type, Versions,
};
use serde_json::{Value, json};

/// The schemas by name, each with its types by name.
#[derive(Debug)]
pub(crate) struct Schemas(BTreeMap<String, BTreeMap<String, Value>>);

impl Schemas {
    pub(crate) fn read(text: &str) -> Self {
        let schemas: BTreeMap<String, Value> = serde_json::from_str(text).unwrap();
        let types = |schema: Value| {
            let types = schema["types"].as_array().unwrap().clone();
            types.into_iter().map(|of| (of["name"].as_str().unwrap().to_owned(), of)).collect()
        };
        Self(schemas.into_iter().map(|(name, schema)| (name, types(schema))).collect())
    }

    pub(crate) fn named(&self, schema: &str, name: &str) -> Type<Ref<'_>> {
        match name {
            "__untyped_deduced_" | "deduced" => Type::Deduced,
            "__untyped_atomic_" => Type::Untyped,
            _ => {
                let types = &self.0[schema];
                Type::Declared(Ref { types, atom: &types[name], relationship: None })
            }
        }
    }
}

/// A reference to a type of a schema, with the other types of the schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ref<'s> {
    types: &'s BTreeMap<String, Value>,
    atom: &'s Value,
    relationship: Option<&'s str>,
}

impl<'s> Ref<'s> {
    fn refer(self, reference: &'s Value) -> Type<Self> {
        let relationship = reference.get("elementRelationship").and_then(Value::as_str);
        match reference.get("namedType").and_then(Value::as_str) {
            Some("__untyped_deduced_") => Type::Deduced,
            Some("__untyped_atomic_") => Type::Untyped,
            Some(name) => Type::Declared(Self { atom: &self.types[name], relationship, ..self }),
            None => Type::Declared(Self { atom: reference, relationship, ..self }),
        }
    }

    fn declared(self, name: &str) -> Option<&'s Value> {
        let fields = self.atom.get("map")?.get("fields")?.as_array()?;
        fields.iter().find(|field| field["name"] == name)
    }

    fn is_atomic(self, atom: &'s Value) -> bool {
        let own = atom.get("elementRelationship").and_then(Value::as_str);
        self.relationship.or(own) == Some("atomic")
    }
}

impl Schema for Ref<'_> {
    fn atom(self) -> Atom<Self> {
        Atom {
            scalar: self.atom.get("scalar").map(|scalar| match scalar.as_str() {
                Some("numeric") => Scalar::Numeric,
                Some("string") => Scalar::String,
                Some("boolean") => Scalar::Boolean,
                _ => Scalar::Untyped,
            }),
            list: self.atom.get("list").map(|list| ListType {
                element: self.refer(&list["elementType"]),
                relation: match list.get("keys") {
                    _ if self.is_atomic(list) => Relation::Atomic,
                    Some(_) => Relation::Keyed,
                    None => Relation::Set,
                },
            }),
            map: self.atom.get("map").map(|map| MapType {
                element: map.get("elementType").map(|element| self.refer(element)),
                is_atomic: self.is_atomic(map),
                has_fields: map.get("fields").is_some(),
            }),
        }
    }

    fn field(self, name: &str) -> Option<Type<Self>> {
        self.declared(name).map(|field| self.refer(&field["type"]))
    }

    fn field_default(self, name: &str) -> Option<Value> {
        self.declared(name)?.get("default").cloned()
    }

    fn keys(&self) -> Vec<&str> {
        let keys = self.atom.get("list").and_then(|list| list.get("keys")).and_then(Value::as_array);
        keys.into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// A kind with one version.
pub(crate) struct Widgets<'a>(pub(crate) &'a Schemas);

impl<'a> Versions for Widgets<'a> {
    type Schema = Ref<'a>;

    fn root(&self, api_version: &str) -> Option<Type<Ref<'a>>> {
        (api_version == "example.com/v1").then(|| self.0.named("widgets", "widget"))
    }

    fn convert(&self, _: &Value, api_version: &str) -> Result<Value, ConversionError> {
        Err(ConversionError::UnknownVersion(format!("there is no {api_version}")))
    }

    fn empty(&self, api_version: &str) -> Value {
        json!({"apiVersion": api_version, "kind": "Widget"})
    }
}
