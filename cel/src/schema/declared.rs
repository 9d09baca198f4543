//! What the checker and the estimate know of the values of a schema.
//!
//! Source: apiserver pkg/cel/common/schemas.go, `SchemaDeclType`, and pkg/cel/types.go.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Kind, Schema, escape};
use crate::environment::{Environment, ObjectType};
use crate::estimate::{Range, Sizes};
use crate::types::Type;

/// The largest request, in bytes.
///
/// Source: apiserver pkg/apis/cel/config.go, `MaxRequestSizeBytes`.
const LARGEST_REQUEST: i64 = 3 << 20;

/// How long values of JSON are at least and at most, in bytes.
///
/// Source: apiserver pkg/cel/limits.go.
mod limits {
    pub(super) const LONGEST_DURATION: i64 = 32;
    pub(super) const SHORTEST_DURATION: i64 = 3;
    pub(super) const LONGEST_DATE_TIME: i64 = 32;
    pub(super) const SHORTEST_DATE_TIME: i64 = 21;
    pub(super) const DATE: i64 = 12;
    pub(super) const SHORTEST_STRING: i64 = 2;
    pub(super) const SHORTEST_BOOLEAN: i64 = 4;
    pub(super) const SHORTEST_NUMBER: i64 = 1;
    pub(super) const SHORTEST_INT_OR_STRING: i64 = 1;
    pub(super) const EMPTY: i64 = 2;
}

/// The type of the values of a schema, with how large they can be.
#[derive(Clone, Debug)]
pub struct DeclaredType {
    shape: Shape,
    /// How many characters, elements or entries a value has at most; 0 where it has no size.
    max_elements: i64,
    /// How many bytes of JSON a value takes at least.
    min_serialized_size: i64,
}

#[derive(Clone, Debug)]
enum Shape {
    Scalar(Type),
    List(Box<DeclaredType>),
    Map(Box<DeclaredType>),
    /// The fields by their escaped names.
    Object(BTreeMap<Arc<str>, DeclaredType>),
}

impl Schema {
    /// The type of its values; none where expressions cannot mention them: of no type, or lists and maps of such.
    ///
    /// Source: apiserver pkg/cel/common/schemas.go, `SchemaDeclType`.
    pub fn declared_type(&self) -> Option<DeclaredType> {
        match self.kind {
            Kind::Array => self.declared_list(),
            Kind::Object => match &self.additional_properties {
                Some(values) => self.declared_map(values),
                None => Some(self.declared_object()),
            },
            Kind::String => Some(self.declared_text()),
            Kind::Boolean => Some(DeclaredType::scalar(Type::Bool, 0, limits::SHORTEST_BOOLEAN)),
            Kind::Number => Some(DeclaredType::scalar(Type::Double, 0, limits::SHORTEST_NUMBER)),
            Kind::Integer => Some(DeclaredType::scalar(Type::Int, 0, limits::SHORTEST_NUMBER)),
            Kind::IntOrString => {
                let longest = self.max_length.map_or(LARGEST_REQUEST - 2, bytes);
                Some(DeclaredType::scalar(Type::Dyn, longest, limits::SHORTEST_INT_OR_STRING))
            }
            Kind::Preserved | Kind::Other(_) => None,
        }
    }

    fn declared_list(&self) -> Option<DeclaredType> {
        let items = self.items.as_ref()?.declared_type()?;
        // Brackets, and a comma for each.
        let fitting = (LARGEST_REQUEST - 2) / (items.min_serialized_size + 1);
        let max_elements = self.max_items.map_or(fitting, |most| most.max(0));
        let shape = Shape::List(Box::new(items));
        Some(DeclaredType { shape, max_elements, min_serialized_size: limits::EMPTY })
    }

    fn declared_map(&self, values: &Self) -> Option<DeclaredType> {
        let values = values.declared_type()?;
        // Braces, and for each value a comma, a colon, quotes and a key of two bytes.
        let fitting = (LARGEST_REQUEST - 2) / (values.min_serialized_size + 6);
        let max_elements = self.max_properties.map_or(fitting, |most| most.max(0));
        let shape = Shape::Map(Box::new(values));
        Some(DeclaredType { shape, max_elements, min_serialized_size: limits::EMPTY })
    }

    fn declared_object(&self) -> DeclaredType {
        let mut min_serialized_size = limits::EMPTY;
        let mut fields = BTreeMap::new();
        for (name, property) in &self.properties {
            let Some(of) = property.declared_type() else { continue };
            // The server fills in defaults.
            if !property.has_default && self.required.contains(name) {
                let length = i64::try_from(name.len()).unwrap_or(i64::MAX);
                min_serialized_size =
                    min_serialized_size.saturating_add(length).saturating_add(of.min_serialized_size + 4);
            }
            if let Some(escaped) = escape(name) {
                fields.insert(escaped.into(), of);
            }
        }
        DeclaredType { shape: Shape::Object(fields), max_elements: 0, min_serialized_size }
    }

    fn declared_text(&self) -> DeclaredType {
        let longest = LARGEST_REQUEST - 2;
        match self.format.as_str() {
            "byte" => {
                let longest = self.max_length.map_or(longest, |length| length.max(0));
                DeclaredType::scalar(Type::Bytes, longest, limits::SHORTEST_STRING)
            }
            "duration" => {
                DeclaredType::scalar(Type::Duration, limits::LONGEST_DURATION, limits::SHORTEST_DURATION)
            }
            "date" => DeclaredType::scalar(Type::Timestamp, limits::DATE, limits::DATE),
            "date-time" => {
                DeclaredType::scalar(Type::Timestamp, limits::LONGEST_DATE_TIME, limits::SHORTEST_DATE_TIME)
            }
            _ => {
                let longest = match self.max_length {
                    Some(length) => bytes(length),
                    None if self.values.is_empty() => longest,
                    None => self.longest_value(),
                };
                DeclaredType::scalar(Type::String, longest, limits::SHORTEST_STRING)
            }
        }
    }

    fn longest_value(&self) -> i64 {
        let lengths = self.values.iter().filter_map(|value| i64::try_from(value.as_str()?.len()).ok());
        lengths.max().unwrap_or_default()
    }
}

/// A length in characters, of which each has up to four bytes.
fn bytes(length: i64) -> i64 {
    length.max(0).wrapping_mul(4)
}

impl DeclaredType {
    fn scalar(of: Type, max_elements: i64, min_serialized_size: i64) -> Self {
        Self { shape: Shape::Scalar(of), max_elements, min_serialized_size }
    }

    /// How often a value can be in one object at most: kube-apiserver multiplies the estimated cost of a rule by it
    /// below lists and maps whose size nothing bounds.
    ///
    /// Source: apiextensions-apiserver pkg/apiserver/schema/cel/compilation.go, `maxCardinality`.
    pub fn max_cardinality(&self) -> u64 {
        u64::try_from(LARGEST_REQUEST / (self.min_serialized_size + 1)).unwrap_or_default()
    }

    /// The type with names for its objects: `name` for itself, `name.field` for that of a field, `@idx` and `@elem` for
    /// those of elements. The types of objects are added to `objects`.
    ///
    /// Source: apiserver pkg/cel/types.go, `MaybeAssignTypeName`.
    fn named(&self, name: &str, objects: &mut Vec<ObjectType>) -> Type {
        match &self.shape {
            Shape::Scalar(of) => of.clone(),
            Shape::List(items) => Type::list(items.named(&format!("{name}.@idx"), objects)),
            Shape::Map(values) => Type::map(Type::String, values.named(&format!("{name}.@elem"), objects)),
            Shape::Object(fields) => {
                let named = |(field, of): (&Arc<str>, &Self)| {
                    (Arc::clone(field), of.named(&format!("{name}.{field}"), objects))
                };
                let fields: Vec<_> = fields.iter().map(named).collect();
                objects.push(ObjectType::new(name, fields));
                Type::object(name)
            }
        }
    }

    fn part(&self, name: &str) -> Option<&Self> {
        match (&self.shape, name) {
            (Shape::List(elements) | Shape::Map(elements), "@items" | "@values") => Some(elements),
            (Shape::Object(fields), _) => fields.get(name),
            _ => None,
        }
    }
}

/// The sizes of variables that all have the type, whatever their names.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/cel/compilation.go, `sizeEstimator`.
impl Sizes for DeclaredType {
    fn size(&self, path: &[String], _of: &Type) -> Option<Range> {
        let (_variable, parts) = path.split_first()?;
        let mut at = self;
        for (place, part) in parts.iter().enumerate() {
            if part == "@keys" && matches!(at.shape, Shape::Map(_)) {
                // Nothing bounds keys, which the API server counts as empty.
                return (place + 1 == parts.len()).then(|| Range::new(0, 0));
            }
            at = at.part(part)?;
        }
        Some(Range::new(0, at.max_elements.cast_unsigned()))
    }
}

/// The environment with variables of the type, whose objects are called `name` and so on. kube-apiserver has `self` and
/// `oldSelf`, and another name each time, such as `selfType123456789`.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/cel/compilation.go, `prepareEnvSet`.
#[must_use]
pub fn with_declared_type(
    environment: Environment,
    of: &DeclaredType,
    name: &str,
    variables: &[&str],
) -> Environment {
    let (environment, named) = with_names(environment, of, name);
    variables
        .iter()
        .fold(environment, |environment, variable| environment.with_variable(variable, named.clone()))
}

/// As [`with_declared_type`] for a rule with `optionalOldSelf`: `self` is of the type, and `oldSelf` is optional.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/cel/compilation.go, `prepareEnvSet`.
#[must_use]
pub fn with_optional_old_self(environment: Environment, of: &DeclaredType, name: &str) -> Environment {
    let (environment, named) = with_names(environment, of, name);
    environment.with_variable("self", named.clone()).with_variable("oldSelf", Type::optional(named))
}

fn with_names(environment: Environment, of: &DeclaredType, name: &str) -> (Environment, Type) {
    let mut objects = Vec::new();
    let named = of.named(name, &mut objects);
    let environment =
        objects.into_iter().fold(environment, Environment::with_object).with_names_of_scalar_types();
    (environment, named)
}
