//! Describes the built-in types for server-side apply.
//!
//! Source: kube-openapi pkg/schemaconv, which converts kube-apiserver's OpenAPI documents.

use kubernetes_managed_fields::{self as managed_fields, Atom, ListType, MapType, Relation, Scalar, Schema};
use serde_json::Value;

use super::table::{self, Form, Kind, Message, Shape};
use super::walk::{Type, is_type_meta};

/// Returns the type of a value for server-side apply. Values that may be arbitrary JSON do not have a declared type.
///
/// Rule: APY-09, APY-10.
pub fn applied(of: Type) -> managed_fields::Type<Type> {
    let message = match of {
        Type::Free => return managed_fields::Type::Deduced,
        Type::ApiVersionOrKind => return managed_fields::Type::Declared(of),
        Type::Object(_) | Type::Field(_) | Type::Item(_) => of.message(),
    };
    let kind = match of {
        Type::Item(field) => Some(field.kind),
        Type::Field(field) if matches!(field.shape, Shape::Plain | Shape::Optional) => Some(field.kind),
        Type::Field(_) | Type::Object(_) | Type::ApiVersionOrKind | Type::Free => None,
    };
    match (message, kind) {
        (Some(message), _) if message.form == Form::Value => any_of(message),
        (None, Some(Kind::IntOrString | Kind::Json)) => managed_fields::Type::Deduced,
        _ => managed_fields::Type::Declared(of),
    }
}

/// Returns the type of a message with several JSON forms. OpenAPI describes such a message only if it is a list.
fn any_of(message: &'static Message) -> managed_fields::Type<Type> {
    match message.fields.as_slice() {
        _ if message.name == "RawExtension" => managed_fields::Type::Untyped,
        [list] if list.shape == Shape::List => managed_fields::Type::Declared(Type::Field(list)),
        _ => managed_fields::Type::Deduced,
    }
}

impl Schema for Type {
    fn atom(self) -> Atom<Self> {
        let kind = match self {
            Self::Field(field) if field.shape == Shape::List => {
                let relation = match &field.list {
                    table::ListType::Atomic => Relation::Atomic,
                    table::ListType::Set => Relation::Set,
                    table::ListType::Map(_) => Relation::Keyed,
                };
                return Atom::from_list(ListType { element: applied(Self::Item(field)), relation });
            }
            Self::Field(field) if field.shape == Shape::Map => {
                let element = Some(applied(Self::Item(field)));
                return Atom::from_map(MapType { element, is_atomic: self.is_atomic(), has_fields: false });
            }
            Self::Field(field) | Self::Item(field) => field.kind,
            Self::Free | Self::ApiVersionOrKind | Self::Object(_) => Kind::String,
        };
        match self.message() {
            Some(message) => {
                let has_fields = !message.fields.is_empty();
                let element = if has_fields { None } else { Some(managed_fields::Type::Deduced) };
                Atom::from_map(MapType { element, is_atomic: self.is_atomic(), has_fields })
            }
            None => Atom::from_scalar(scalar(kind)),
        }
    }

    fn field(self, name: &str) -> Option<managed_fields::Type<Self>> {
        let message = self.message()?;
        let is_declared = message.member(name).is_some() || (message.is_kind && is_type_meta(name));
        is_declared.then(|| applied(self.member(name)))
    }

    /// Returns the default value in OpenAPI. Fields that are always present default to their zero value.
    fn field_default(self, name: &str) -> Option<Value> {
        let field = self.message()?.member(name)?;
        if field.default.is_some() {
            return field.default.clone();
        }
        match (field.shape, field.kind) {
            (Shape::Plain, Kind::String) if field.always || self.is_reference() => Some("".into()),
            (Shape::Plain, Kind::Bool) if field.always => Some(false.into()),
            (Shape::Plain, Kind::Int32 | Kind::Int64) if field.always => Some(0.into()),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        Self::keys(*self).map(<[&str]>::to_vec).unwrap_or_default()
    }
}

impl Type {
    /// Returns whether the type is `LocalObjectReference`, whose only field `name` defaults to an empty string.
    ///
    /// Source: api core/v1/types.go, `LocalObjectReference`.
    fn is_reference(self) -> bool {
        self.message().is_some_and(|message| message.go == "v1.LocalObjectReference")
    }
}

fn scalar(kind: Kind) -> Scalar {
    match kind {
        Kind::String | Kind::Bytes => Scalar::String,
        Kind::Bool => Scalar::Boolean,
        Kind::Int32 | Kind::Int64 | Kind::Double => Scalar::Numeric,
        Kind::Json | Kind::Quantity | Kind::Time | Kind::MicroTime | Kind::IntOrString | Kind::Message(_) => {
            Scalar::Untyped
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::group_version::GroupVersionKind;

    /// Returns the type at `path` in a kind; `*` selects the items of a list or the values of a map.
    fn at(version: &str, kind: &str, path: &[&str]) -> managed_fields::Type<Type> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let mut of = applied(Type::for_kind(&GroupVersionKind::new(group, version, kind)));
        for name in path {
            let managed_fields::Type::Declared(declared) = of else { panic!("{name} is below no struct") };
            let atom = declared.atom();
            of = match (*name, atom.list, atom.map) {
                ("*", Some(list), _) => list.element,
                ("*", None, Some(map)) => map.element.unwrap(),
                (name, _, _) => declared.field(name).unwrap(),
            };
        }
        of
    }

    fn declared(version: &str, kind: &str, path: &[&str]) -> Type {
        let of = at(version, kind, path);
        let managed_fields::Type::Declared(declared) = of else { panic!("{path:?} is {of:?}") };
        declared
    }

    #[test]
    fn container_ports_have_two_keys_one_with_a_default() {
        let ports = declared("v1", "Pod", &["spec", "containers", "*", "ports"]);
        assert_eq!(Schema::keys(&ports), ["containerPort", "protocol"]);
        assert_eq!(ports.atom().list.unwrap().relation, Relation::Keyed);
        let port = declared("v1", "Pod", &["spec", "containers", "*", "ports", "*"]);
        assert_eq!(port.field_default("protocol"), Some(json!("TCP")));
        assert_eq!(port.field_default("containerPort"), Some(json!(0)));
        assert_eq!(port.field_default("hostPort"), None);
        let secret = declared("v1", "Pod", &["spec", "imagePullSecrets", "*"]);
        assert_eq!(secret.field_default("name"), Some(json!("")));
    }

    #[test]
    fn structs_and_maps_may_be_atomic() {
        let is_atomic = |path: &[&str]| declared("v1", "Pod", path).atom().map.unwrap().is_atomic;
        assert!(is_atomic(&["spec", "nodeSelector"]));
        assert!(is_atomic(&["spec", "imagePullSecrets", "*"]));
        assert!(!is_atomic(&["metadata", "labels"]));
        assert!(!is_atomic(&["spec"]));
        let rows = declared("apps/v1", "Deployment", &["spec", "selector"]).atom().map.unwrap();
        assert_eq!((rows.is_atomic, rows.has_fields), (true, true));
    }

    #[test]
    fn scalars_with_their_own_encoding_are_untyped() {
        let scalar = |path: &[&str]| declared("v1", "Pod", path).atom().scalar;
        assert_eq!(scalar(&["metadata", "creationTimestamp"]), Some(Scalar::Untyped));
        assert_eq!(scalar(&["spec", "overhead", "*"]), Some(Scalar::Untyped));
        assert_eq!(scalar(&["spec", "priority"]), Some(Scalar::Numeric));
        assert_eq!(scalar(&["spec", "hostNetwork"]), Some(Scalar::Boolean));
        assert_eq!(scalar(&["apiVersion"]), Some(Scalar::String));
        let port = at("v1", "Service", &["spec", "ports", "*", "targetPort"]);
        assert!(matches!(port, managed_fields::Type::Deduced));
    }

    #[test]
    fn arbitrary_json_is_deduced_or_atomic() {
        let data = at("apps/v1", "ControllerRevision", &["data"]);
        assert!(matches!(data, managed_fields::Type::Untyped));
        let path = ["spec", "versions", "*", "schema", "openAPIV3Schema", "default"];
        let schema = at("apiextensions.k8s.io/v1", "CustomResourceDefinition", &path);
        assert!(matches!(schema, managed_fields::Type::Deduced));
        assert!(matches!(applied(Type::Free), managed_fields::Type::Deduced));
    }
}
