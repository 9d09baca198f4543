//! Implements CEL lists.

use std::sync::Arc;

use serde_json::Value as Json;

use super::{Origin, Value, structured};
use crate::schema::{ListType, Schema};

/// A list. It is borrowed JSON or was created during the evaluation.
#[derive(Clone, Debug)]
pub struct List<'a>(Repr<'a>);

#[derive(Clone, Debug)]
enum Repr<'a> {
    Json(&'a [Json], Origin),
    /// A list in a document that is read through the list's schema.
    Structured(&'a [Json], &'a Schema),
    Shared(Arc<Vec<Value<'a>>>),
    /// The result of `+` on a set or on a list with keys. The result is also a set or a list with keys.
    OfSchema(Arc<Vec<Value<'a>>>, &'a Schema),
    /// The result of `left + right` without copying. Both sides are non-empty.
    Concat(Arc<Concat<'a>>),
}

#[derive(Debug)]
struct Concat<'a> {
    left: List<'a>,
    right: List<'a>,
    len: usize,
}

impl<'a> List<'a> {
    /// Creates a list from a JSON array.
    pub fn from_json(elements: &'a [Json], origin: Origin) -> Self {
        Self(Repr::Json(elements, origin))
    }

    /// Creates a list from a JSON array that is read through the list's schema.
    pub(super) fn from_structured(elements: &'a [Json], schema: &'a Schema) -> Self {
        Self(Repr::Structured(elements, schema))
    }

    /// Creates a list whose comparisons follow a list schema.
    pub(super) fn of_schema(elements: Vec<Value<'a>>, schema: &'a Schema) -> Self {
        Self(Repr::OfSchema(Arc::new(elements), schema))
    }

    /// Returns the schema of the list, or `None` if the list does not have one.
    pub(super) fn schema(&self) -> Option<&'a Schema> {
        match self.0 {
            Repr::Structured(_, schema) | Repr::OfSchema(_, schema) => Some(schema),
            Repr::Json(..) | Repr::Shared(_) | Repr::Concat(_) => None,
        }
    }

    /// Returns whether the list is part of a document that is read through a schema.
    pub(crate) fn is_structured(&self) -> bool {
        matches!(self.0, Repr::Structured(..))
    }

    /// Returns the list's JSON, or `None` if Go does not represent the list as JSON.
    pub(super) fn json(&self) -> Option<&'a [Json]> {
        match self.0 {
            Repr::Structured(elements, _) | Repr::Json(elements, Origin::Unstructured) => Some(elements),
            Repr::Json(..) | Repr::Shared(_) | Repr::OfSchema(..) | Repr::Concat(_) => None,
        }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Json(elements, _) | Repr::Structured(elements, _) => elements.len(),
            Repr::Shared(elements) | Repr::OfSchema(elements, _) => elements.len(),
            Repr::Concat(concat) => concat.len,
        }
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how kube-apiserver represents the list. Lists created by the evaluation are unstructured.
    pub fn origin(&self) -> Origin {
        if let Repr::Json(_, origin) = self.0 { origin } else { Origin::Unstructured }
    }

    /// Returns whether kube-apiserver has a separate type for the list. Such lists do not have a zero value, and are
    /// compared only with lists.
    pub(super) fn is_wrapped(&self) -> bool {
        self.origin().is_typed() || self.schema().is_some()
    }

    /// Returns the element at `index`, or `None` if the index is out of bounds.
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        let mut list = self;
        let mut index = index;
        loop {
            match &list.0 {
                Repr::Json(elements, origin) => {
                    return elements.get(index).map(|element| Value::from_json_of(element, *origin));
                }
                Repr::Structured(elements, schema) => {
                    return elements.get(index).map(|element| structured::element(element, schema));
                }
                Repr::Shared(elements) | Repr::OfSchema(elements, _) => return elements.get(index).cloned(),
                Repr::Concat(concat) => {
                    let left = concat.left.len();
                    if index < left {
                        list = &concat.left;
                    } else {
                        index -= left;
                        list = &concat.right;
                    }
                }
            }
        }
    }

    /// Returns the name of the Go type that represents the list.
    pub(super) fn go_type(&self) -> &'static str {
        match self.0 {
            Repr::Json(_, origin) if origin.is_typed() => "*common.reflectSchemalessTypedList",
            Repr::Structured(_, schema) => match schema.list_type {
                ListType::Set => "*common.unstructuredSetList",
                ListType::Map(_) => "*common.unstructuredMapList",
                ListType::Atomic | ListType::Other(_) => "*common.unstructuredList",
            },
            Repr::OfSchema(_, schema) => match schema.list_type {
                ListType::Set => "*common.refValSetList",
                ListType::Map(_) | ListType::Atomic | ListType::Other(_) => "*common.refValMapList",
            },
            Repr::Concat(_) => "*types.concatList",
            Repr::Json(..) | Repr::Shared(_) => "*types.baseList",
        }
    }

    /// Returns the list's memory address, or `None` for JSON, because Go creates a new list each time.
    pub(super) fn address(&self) -> Option<usize> {
        match &self.0 {
            Repr::Json(..) | Repr::Structured(..) => None,
            Repr::Shared(elements) | Repr::OfSchema(elements, _) => Some(Arc::as_ptr(elements).addr()),
            Repr::Concat(concat) => Some(Arc::as_ptr(concat).addr()),
        }
    }

    pub(super) fn is_json(&self) -> bool {
        matches!(self.0, Repr::Json(_, Origin::Unstructured))
    }

    /// Returns the elements in order.
    pub fn iter(&self) -> Iter<'_, 'a> {
        Iter { pending: vec![self], current: Leaf::Shared([].iter()) }
    }

    /// Concatenates two lists without copying.
    #[must_use]
    pub fn concat(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        // kube-apiserver copies a typed list when it appends to the list. The result is unstructured either way.
        let len = self.len().saturating_add(other.len());
        Self(Repr::Concat(Arc::new(Concat { left: self, right: other, len })))
    }

    /// Returns whether the list is the result of `+`. Such a list is compared slightly differently from other lists.
    pub(super) fn is_concat(&self) -> bool {
        matches!(self.0, Repr::Concat(_))
    }

    /// Returns the list without nested concatenations, for results that outlive the evaluation.
    pub(crate) fn flattened(self) -> Self {
        if self.is_concat() { Self::from(self.iter().collect::<Vec<_>>()) } else { self }
    }

    /// Adds an element in place, or to a copy if the list is shared.
    pub(crate) fn push(&mut self, element: Value<'a>) {
        if let Repr::Shared(elements) = &mut self.0
            && let Some(elements) = Arc::get_mut(elements)
        {
            elements.push(element);
            return;
        }
        let mut elements: Vec<Value<'a>> = self.iter().collect();
        elements.push(element);
        self.0 = Repr::Shared(Arc::new(elements));
    }
}

impl<'a> From<Vec<Value<'a>>> for List<'a> {
    fn from(elements: Vec<Value<'a>>) -> Self {
        Self(Repr::Shared(Arc::new(elements)))
    }
}

impl<'a> FromIterator<Value<'a>> for List<'a> {
    fn from_iter<I: IntoIterator<Item = Value<'a>>>(elements: I) -> Self {
        Self::from(elements.into_iter().collect::<Vec<_>>())
    }
}

impl<'l, 'a> IntoIterator for &'l List<'a> {
    type Item = Value<'a>;
    type IntoIter = Iter<'l, 'a>;

    fn into_iter(self) -> Iter<'l, 'a> {
        self.iter()
    }
}

/// An iterator over the elements of a list.
#[derive(Debug)]
pub struct Iter<'l, 'a> {
    pending: Vec<&'l List<'a>>,
    current: Leaf<'l, 'a>,
}

#[derive(Debug)]
enum Leaf<'l, 'a> {
    Json(std::slice::Iter<'a, Json>, Origin),
    Structured(std::slice::Iter<'a, Json>, &'a Schema),
    Shared(std::slice::Iter<'l, Value<'a>>),
}

impl<'a> Iterator for Iter<'_, 'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        loop {
            let element = match &mut self.current {
                Leaf::Json(elements, origin) => {
                    elements.next().map(|element| Value::from_json_of(element, *origin))
                }
                Leaf::Structured(elements, schema) => {
                    elements.next().map(|element| structured::element(element, schema))
                }
                Leaf::Shared(elements) => elements.next().cloned(),
            };
            if element.is_some() {
                return element;
            }
            match &self.pending.pop()?.0 {
                Repr::Json(elements, origin) => self.current = Leaf::Json(elements.iter(), *origin),
                Repr::Structured(elements, schema) => {
                    self.current = Leaf::Structured(elements.iter(), schema);
                }
                Repr::Shared(elements) | Repr::OfSchema(elements, _) => {
                    self.current = Leaf::Shared(elements.iter());
                }
                Repr::Concat(concat) => self.pending.extend([&concat.right, &concat.left]),
            }
        }
    }
}
