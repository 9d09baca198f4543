//! What is known of the types of objects. The caller declares them.

use serde_json::Value;

/// A reference to a type that the caller declares; cheap to copy.
pub trait Schema: Copy {
    /// What kinds of values the type allows. What a reference says beyond the type that it refers to, such as
    /// `x-kubernetes-map-type: atomic` beside a `$ref`, is part of the reference.
    fn atom(self) -> Atom<Self>;

    /// The type of a declared field of its map; none for other names.
    fn field(self, name: &str) -> Option<Type<Self>>;

    /// The default of a declared field. Asked of key fields alone.
    fn field_default(self, name: &str) -> Option<Value>;

    /// The names of the key fields of its list, in the order of the schema. Asked where the list is
    /// [`Relation::Keyed`].
    fn keys(&self) -> Vec<&str>;
}

/// A type that the caller declares, or one of the two that need no schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "structured-merge-diff has these two and no others")]
pub enum Type<T> {
    /// Of the caller.
    Declared(T),
    /// Any scalar; lists of it are atomic, and its maps are made of it member by member.
    Deduced,
    /// Any value, taken as a whole.
    Untyped,
}

/// The kinds of values that a type allows: several only where a schema does not say.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "callers make them")]
pub struct Atom<T> {
    /// Which scalars.
    pub scalar: Option<Scalar>,
    /// Which lists.
    pub list: Option<ListType<T>>,
    /// Which structs and maps.
    pub map: Option<MapType<T>>,
}

impl<T> Atom<T> {
    /// A type of these scalars alone.
    pub const fn of_scalar(scalar: Scalar) -> Self {
        Self { scalar: Some(scalar), list: None, map: None }
    }

    /// A type of these lists alone.
    pub const fn of_list(list: ListType<T>) -> Self {
        Self { scalar: None, list: Some(list), map: None }
    }

    /// A type of these structs or maps alone.
    pub const fn of_map(map: MapType<T>) -> Self {
        Self { scalar: None, list: None, map: Some(map) }
    }
}

/// A value that is neither a list nor a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "structured-merge-diff has these")]
pub enum Scalar {
    /// A number.
    Numeric,
    /// Text.
    String,
    /// `true` or `false`.
    Boolean,
    /// Any of them, such as quantities, times, and ports by number or name.
    Untyped,
}

/// A type of lists.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "callers make them")]
pub struct ListType<T> {
    /// The type of the items.
    pub element: Type<T>,
    /// What makes items of two lists the same.
    pub relation: Relation,
}

/// What makes items of two lists the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "structured-merge-diff has these")]
pub enum Relation {
    /// Nothing: a list is one value.
    Atomic,
    /// The item itself.
    Set,
    /// Its key fields.
    Keyed,
}

/// A type of structs and maps.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "callers make them")]
pub struct MapType<T> {
    /// The type of members that are not declared; without, there must be none.
    pub element: Option<Type<T>>,
    /// Whether it is one value.
    pub is_atomic: bool,
    /// Whether it declares fields.
    pub has_fields: bool,
}

/// The two types without a schema.
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
