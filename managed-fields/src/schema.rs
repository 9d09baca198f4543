//! The types of objects. The caller declares them.

use serde_json::Value;

/// A cheap-to-copy reference to a type that the caller declares.
pub trait Schema: Copy {
    /// Returns the values that the type allows.
    ///
    /// A reference may add restrictions to the type, such as `x-kubernetes-map-type: atomic` next to a `$ref`.
    fn atom(self) -> Atom<Self>;

    /// Returns the type of a declared field of the map, or `None` if `name` is not declared.
    fn field(self, name: &str) -> Option<Type<Self>>;

    /// Returns the default of a declared field. The method is called only for key fields.
    fn field_default(self, name: &str) -> Option<Value>;

    /// Returns the names of the list's key fields, in the order in which the schema lists them.
    ///
    /// The method is called only if the list is [`Relation::Keyed`].
    fn keys(&self) -> Vec<&str>;
}

/// A type that the caller declares, or one of the two types without a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "structured-merge-diff has these two and no others")]
pub enum Type<T> {
    /// A type that the caller declares.
    Declared(T),
    /// A type for values without a schema: scalars, atomic lists, and maps that are merged by member.
    Deduced,
    /// Any value, treated as atomic.
    Untyped,
}

/// The values that a type allows; a type without a specified kind allows several kinds.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "callers make them")]
pub struct Atom<T> {
    /// The scalars that the type allows.
    pub scalar: Option<Scalar>,
    /// The lists that the type allows.
    pub list: Option<ListType<T>>,
    /// The structs and maps that the type allows.
    pub map: Option<MapType<T>>,
}

impl<T> Atom<T> {
    /// Creates a type that allows only these scalars.
    pub const fn from_scalar(scalar: Scalar) -> Self {
        Self { scalar: Some(scalar), list: None, map: None }
    }

    /// Creates a type that allows only these lists.
    pub const fn from_list(list: ListType<T>) -> Self {
        Self { scalar: None, list: Some(list), map: None }
    }

    /// Creates a type that allows only these structs or maps.
    pub const fn from_map(map: MapType<T>) -> Self {
        Self { scalar: None, list: None, map: Some(map) }
    }
}

/// The scalars that a type allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "structured-merge-diff has these")]
pub enum Scalar {
    /// Integers and floating-point numbers.
    Numeric,
    /// Only strings.
    String,
    /// Only booleans.
    Boolean,
    /// Any scalar, such as quantities, times, and ports by number or name.
    Untyped,
}

/// A list type: the item type, and how items are matched.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "callers make them")]
pub struct ListType<T> {
    /// The type of the items.
    pub element: Type<T>,
    /// How items of two lists are matched.
    pub relation: Relation,
}

/// How items of two lists are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "structured-merge-diff has these")]
pub enum Relation {
    /// Items are not matched: the list is a single value.
    Atomic,
    /// Equal items are matched.
    Set,
    /// Items with equal key fields are matched.
    Keyed,
}

/// A type of structs and maps: their members, and whether a whole struct or map is a single value.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "callers make them")]
pub struct MapType<T> {
    /// The type of members that are not declared; if `None`, only declared members are allowed.
    pub element: Option<Type<T>>,
    /// Whether the map is treated as a single value.
    pub is_atomic: bool,
    /// Whether the type declares fields.
    pub has_fields: bool,
}

/// Resolves the two types without a schema.
///
/// Source: structured-merge-diff typed/parser.go, `DeducedParseableType`.
impl<T: Schema> Type<T> {
    pub(crate) fn atom(self) -> Atom<T> {
        let is_atomic = match self {
            Self::Declared(declared) => return declared.atom(),
            Self::Deduced => false,
            Self::Untyped => true,
        };
        Atom {
            scalar: Some(Scalar::Untyped),
            list: Some(ListType { element: Self::Untyped, relation: Relation::Atomic }),
            map: Some(MapType { element: Some(self), is_atomic, has_fields: false }),
        }
    }

    pub(crate) fn field(self, name: &str) -> Option<Self> {
        match self {
            Self::Declared(declared) => declared.field(name),
            Self::Deduced | Self::Untyped => None,
        }
    }

    pub(crate) fn field_default(self, name: &str) -> Option<Value> {
        match self {
            Self::Declared(declared) => declared.field_default(name),
            Self::Deduced | Self::Untyped => None,
        }
    }

    pub(crate) fn keys(&self) -> Vec<&str> {
        match self {
            Self::Declared(declared) => declared.keys(),
            Self::Deduced | Self::Untyped => Vec::new(),
        }
    }
}
