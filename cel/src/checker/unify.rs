//! Unifies types and infers type variables.
//!
//! Source: cel-go checker/types.go and checker/mapping.go.

use std::sync::Arc;

use crate::types::{OPTIONAL, Type};

/// The types inferred for type variables and parameters.
#[derive(Debug, Default)]
pub(super) struct Substitutions {
    variables: Vec<Option<Type>>,
    /// The types inferred for the parameters of declared types, such as `A` in the type of the name `list`.
    parameters: Vec<(&'static str, Type)>,
    /// The previous values of changed substitutions. They are restored if an attempt fails.
    replaced: Vec<(Type, Option<Type>)>,
}

impl Substitutions {
    /// Creates a new type variable.
    pub(super) fn fresh(&mut self) -> Type {
        self.variables.push(None);
        Type::Variable(crate::source::narrow(self.variables.len() - 1))
    }

    fn find(&self, of: &Type) -> Option<&Type> {
        match of {
            Type::Variable(number) => self.variables.get(*number as usize)?.as_ref(),
            Type::Parameter(name) => {
                self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    fn put(&mut self, of: &Type, value: Option<Type>) -> Option<Type> {
        match of {
            Type::Variable(number) => {
                let place = self.variables.get_mut(*number as usize)?;
                std::mem::replace(place, value)
            }
            Type::Parameter(name) => {
                let known = self.parameters.iter().position(|(known, _)| known == name);
                let before = known.map(|index| self.parameters.swap_remove(index).1);
                self.parameters.extend(value.map(|value| (*name, value)));
                before
            }
            _ => None,
        }
    }

    fn add(&mut self, of: &Type, value: Type) {
        let before = self.put(of, Some(value));
        self.replaced.push((of.clone(), before));
    }

    /// Returns whether the types are assignable to the expected types; if not, discards the types inferred in the
    /// attempt.
    pub(super) fn all_fit<'t>(
        &mut self,
        types: impl ExactSizeIterator<Item = &'t Type>,
        expected: &[Type],
    ) -> bool {
        let fit = types.len() == expected.len()
            && types.zip(expected).all(|(one, expected)| self.is_assignable(one, expected));
        while let Some((of, before)) = self.replaced.pop() {
            if !fit {
                self.put(&of, before);
            }
        }
        fit
    }

    /// Returns whether one type is assignable to another; if not, discards the types inferred in the attempt.
    pub(super) fn fits(&mut self, one: &Type, other: &Type) -> bool {
        self.all_fit(std::iter::once(one), std::slice::from_ref(other))
    }

    fn is_assignable(&mut self, one: &Type, other: &Type) -> bool {
        if is_parameter(other) {
            let (valid, known) = self.substitutes(one, other);
            if valid || known {
                return valid;
            }
        }
        if is_parameter(one) {
            return self.substitutes(other, one).0;
        }
        if is_dynamic(one) || is_dynamic(other) || *one == Type::Error || *other == Type::Error {
            return true;
        }
        match (one, other) {
            (Type::Null, nullable) | (nullable, Type::Null) => matches!(
                nullable,
                Type::Null
                    | Type::Opaque(..)
                    | Type::Object(_)
                    | Type::Duration
                    | Type::Timestamp
                    | Type::Wrapper(_)
            ),
            (Type::Type(_) | Type::AnyType, Type::Type(_) | Type::AnyType) => true,
            (Type::List(one), Type::List(other)) => self.is_assignable(one, other),
            (Type::Map(key, value), Type::Map(other_key, other_value)) => {
                self.is_assignable(key, other_key) && self.is_assignable(value, other_value)
            }
            (Type::Opaque(name, parameters), Type::Opaque(other_name, others)) => {
                name == other_name
                    && parameters.len() == others.len()
                    && parameters.iter().zip(others.iter()).all(|(one, other)| self.is_assignable(one, other))
            }
            (Type::Wrapper(one), Type::Wrapper(other)) => one == other,
            (Type::Wrapper(one), other) | (other, Type::Wrapper(one)) => **one == *other,
            _ => one == other,
        }
    }

    /// Returns whether the substitution of a variable matches a type, and whether the substitution existed before.
    ///
    /// If the variable does not have a substitution, the type becomes its substitution unless the type contains the
    /// variable.
    fn substitutes(&mut self, one: &Type, variable: &Type) -> (bool, bool) {
        if one == variable {
            return (true, true);
        }
        if let Some(known) = self.find(variable).cloned() {
            if is_exact(one, &known) {
                return (true, true);
            }
            if !self.is_assignable(one, &known) {
                return (false, true);
            }
            let general = most_general(one, &known).clone();
            if self.not_in(variable, &general) {
                self.add(variable, general);
            }
            return (true, true);
        }
        let free = self.not_in(variable, one);
        if free {
            self.add(variable, one.clone());
        }
        (free, false)
    }

    /// Returns whether a type does not contain a variable.
    fn not_in(&self, variable: &Type, within: &Type) -> bool {
        if variable == within {
            return false;
        }
        match within {
            Type::Variable(_) | Type::Parameter(_) => {
                self.find(within).is_none_or(|known| self.not_in(variable, known))
            }
            Type::List(inner) | Type::Type(inner) => self.not_in(variable, inner),
            Type::Map(key, value) => self.not_in(variable, key) && self.not_in(variable, value),
            Type::Opaque(_, parameters) => parameters.iter().all(|inner| self.not_in(variable, inner)),
            _ => true,
        }
    }

    /// Returns the type with all substitutions applied. If `to_dynamic` is set, type variables without a substitution
    /// become `dyn`.
    pub(super) fn substitute(&self, of: &Type, to_dynamic: bool) -> Type {
        if let Some(known) = self.find(of) {
            return self.substitute(known, to_dynamic);
        }
        match of {
            Type::Variable(_) | Type::Parameter(_) if to_dynamic => Type::Dyn,
            Type::List(inner) => Type::List(self.inner(inner, to_dynamic)),
            Type::Type(inner) => Type::Type(self.inner(inner, to_dynamic)),
            Type::Map(key, value) => Type::Map(self.inner(key, to_dynamic), self.inner(value, to_dynamic)),
            Type::Opaque(name, parameters) if !parameters.is_empty() => Type::Opaque(
                Arc::clone(name),
                parameters.iter().map(|inner| self.substitute(inner, to_dynamic)).collect(),
            ),
            _ => of.clone(),
        }
    }

    fn inner(&self, of: &Arc<Type>, to_dynamic: bool) -> Arc<Type> {
        match **of {
            Type::List(_)
            | Type::Type(_)
            | Type::Map(..)
            | Type::Opaque(..)
            | Type::Variable(_)
            | Type::Parameter(_) => Arc::new(self.substitute(of, to_dynamic)),
            _ => Arc::clone(of),
        }
    }
}

/// A copy of an overload's type in which type variables replace the parameters.
#[derive(Debug, Default)]
pub(super) struct Instance {
    parameters: Vec<(&'static str, Type)>,
}

impl Instance {
    /// Replaces the parameters in a type with type variables.
    pub(super) fn instantiate(&mut self, substitutions: &mut Substitutions, declared: &Type) -> Type {
        match declared {
            Type::Parameter(name) => {
                if let Some((_, known)) = self.parameters.iter().find(|(known, _)| known == name) {
                    return known.clone();
                }
                let fresh = substitutions.fresh();
                self.parameters.push((name, fresh.clone()));
                fresh
            }
            Type::List(inner) => Type::list(self.instantiate(substitutions, inner)),
            Type::Type(inner) => Type::Type(Arc::new(self.instantiate(substitutions, inner))),
            Type::Map(key, value) => {
                Type::map(self.instantiate(substitutions, key), self.instantiate(substitutions, value))
            }
            Type::Opaque(name, parameters) if !parameters.is_empty() => Type::Opaque(
                Arc::clone(name),
                parameters.iter().map(|inner| self.instantiate(substitutions, inner)).collect(),
            ),
            _ => declared.clone(),
        }
    }
}

fn is_parameter(of: &Type) -> bool {
    matches!(of, Type::Variable(_) | Type::Parameter(_))
}

/// Returns whether a type is `dyn` or `google.protobuf.Any`.
pub(super) fn is_dynamic(of: &Type) -> bool {
    matches!(of, Type::Dyn | Type::Any)
}

/// Returns the value type of an optional type, or `None` for other types.
pub(super) fn unwrap_optional(of: &Type) -> Option<&Type> {
    match of {
        Type::Opaque(name, parameters) if **name == *OPTIONAL => parameters.first(),
        _ => None,
    }
}

/// Returns whether two types are the same; a wrapper equals its wrapped type.
///
/// Source: cel-go common/types/types.go, `IsExactType`.
pub(super) fn is_exact(one: &Type, other: &Type) -> bool {
    same(one, other, true)
}

/// Returns whether two types are the same, ignoring the names of parameters.
pub(super) fn is_equivalent(one: &Type, other: &Type) -> bool {
    same(one, other, false)
}

fn same(one: &Type, other: &Type, names: bool) -> bool {
    match (one, other) {
        (Type::Wrapper(one), other) => same(one, other, names),
        (one, Type::Wrapper(other)) => same(one, other, names),
        (Type::List(one), Type::List(other)) | (Type::Type(one), Type::Type(other)) => {
            same(one, other, names)
        }
        (Type::Map(key, value), Type::Map(other_key, other_value)) => {
            same(key, other_key, names) && same(value, other_value, names)
        }
        (Type::Opaque(name, parameters), Type::Opaque(other_name, others)) => {
            name == other_name
                && parameters.len() == others.len()
                && parameters.iter().zip(others.iter()).all(|(one, other)| same(one, other, names))
        }
        _ if !names && is_parameter(one) => is_parameter(other),
        _ => one == other,
    }
}

fn most_general<'t>(one: &'t Type, other: &'t Type) -> &'t Type {
    if is_equal_or_less_specific(one, other) { one } else { other }
}

/// Returns the more general of two compatible types.
pub(super) fn joined(one: Type, other: Type) -> Type {
    if is_equal_or_less_specific(&one, &other) { one } else { other }
}

fn is_equal_or_less_specific(one: &Type, other: &Type) -> bool {
    if is_dynamic(one) || is_parameter(one) {
        return true;
    }
    if is_dynamic(other) || is_parameter(other) {
        return false;
    }
    match (one, other) {
        (Type::List(one), Type::List(other)) => is_equal_or_less_specific(one, other),
        (Type::Map(key, value), Type::Map(other_key, other_value)) => {
            is_equal_or_less_specific(key, other_key) && is_equal_or_less_specific(value, other_value)
        }
        (Type::Opaque(name, parameters), Type::Opaque(other_name, others)) => {
            name == other_name
                && parameters.len() == others.len()
                && parameters
                    .iter()
                    .zip(others.iter())
                    .all(|(one, other)| is_equal_or_less_specific(one, other))
        }
        (Type::Type(_) | Type::AnyType, Type::Type(_) | Type::AnyType) => true,
        _ => is_exact(one, other),
    }
}
