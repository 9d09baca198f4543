//! Declares the protocol buffer types that exist in every environment.
//!
//! Source: cel-go common/types/provider.go, common/types/types.go (`checkedWellKnowns`), common/types/pb/pb.go.

use std::sync::Arc;

use super::{Declarations, NamedType, ObjectType};
use crate::types::Type;

fn wrapper(of: Type) -> Type {
    Type::Wrapper(Arc::new(of))
}

/// Declares the names of the basic types and of the protocol buffer messages.
pub(crate) fn declare(declarations: &mut Declarations) {
    for (name, of) in [
        ("bool", Type::Bool),
        ("bytes", Type::Bytes),
        ("double", Type::Double),
        ("int", Type::Int),
        ("list", Type::list(Type::Dyn)),
        ("map", Type::map(Type::Dyn, Type::Dyn)),
        ("null_type", Type::Null),
        ("string", Type::String),
        ("type", Type::AnyType),
        ("uint", Type::Uint),
    ] {
        declarations.add_type(name, of);
    }

    let dynamic_map = Type::map(Type::String, Type::Dyn);
    let dynamic_list = Type::list(Type::Dyn);
    let seconds_and_nanos = vec![("seconds", Type::Int), ("nanos", Type::Int)];
    let value = |of: Type| vec![("value", of)];
    for (name, of, fields) in [
        ("Any", Type::Any, vec![("type_url", Type::String), ("value", Type::Bytes)]),
        ("BoolValue", wrapper(Type::Bool), value(Type::Bool)),
        ("BytesValue", wrapper(Type::Bytes), value(Type::Bytes)),
        ("DoubleValue", wrapper(Type::Double), value(Type::Double)),
        ("Duration", Type::Duration, seconds_and_nanos.clone()),
        ("Empty", Type::object("google.protobuf.Empty"), Vec::new()),
        ("FloatValue", wrapper(Type::Double), value(Type::Double)),
        ("Int32Value", wrapper(Type::Int), value(Type::Int)),
        ("Int64Value", wrapper(Type::Int), value(Type::Int)),
        ("ListValue", dynamic_list.clone(), vec![("values", dynamic_list.clone())]),
        ("StringValue", wrapper(Type::String), value(Type::String)),
        ("Struct", dynamic_map.clone(), vec![("fields", dynamic_map.clone())]),
        ("Timestamp", Type::Timestamp, seconds_and_nanos),
        ("UInt32Value", wrapper(Type::Uint), value(Type::Uint)),
        ("UInt64Value", wrapper(Type::Uint), value(Type::Uint)),
        (
            "Value",
            Type::Dyn,
            vec![
                ("null_value", Type::Int),
                ("number_value", Type::Double),
                ("string_value", Type::String),
                ("bool_value", Type::Bool),
                ("struct_value", dynamic_map),
                ("list_value", dynamic_list),
            ],
        ),
    ] {
        let name = format!("google.protobuf.{name}");
        declarations.add_object(Arc::new(ObjectType::new(&name, fields)));
        let has_value = matches!(of, Type::Duration | Type::Timestamp | Type::Object(_));
        declarations.add_named(&name, NamedType { as_value: of.clone(), of, has_value });
    }
    declarations.add_constant("google.protobuf.NullValue.NULL_VALUE", 0);
}

/// Returns the name of the protocol buffer message that a type represents, or `None` for other types.
///
/// Source: cel-go checker/checker.go, `isWellKnownType`, `getWellKnownTypeName`.
pub(crate) fn message_of(of: &Type) -> Option<&'static str> {
    match of {
        Type::Any => Some("google.protobuf.Any"),
        Type::Timestamp => Some("google.protobuf.Timestamp"),
        Type::Duration => Some("google.protobuf.Duration"),
        Type::Dyn => Some("google.protobuf.Value"),
        Type::Null => Some("google.protobuf.NullValue"),
        Type::List(element) => (**element == Type::Dyn).then_some("google.protobuf.ListValue"),
        Type::Map(key, value) => {
            (**key == Type::String && **value == Type::Dyn).then_some("google.protobuf.Struct")
        }
        Type::Wrapper(of) => match **of {
            Type::Bool => Some("google.protobuf.BoolValue"),
            Type::Bytes => Some("google.protobuf.BytesValue"),
            Type::Double => Some("google.protobuf.DoubleValue"),
            Type::Int => Some("google.protobuf.Int64Value"),
            Type::String => Some("google.protobuf.StringValue"),
            Type::Uint => Some("google.protobuf.UInt64Value"),
            _ => None,
        },
        _ => None,
    }
}
