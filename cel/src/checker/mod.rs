//! Assigns a type to every node and an overload to every call.
//!
//! Source: cel-go checker/checker.go and checker/errors.go.

mod calls;
mod literals;
mod unify;
pub(crate) mod validate;

use std::sync::Arc;

use crate::ast::{Ast, Comprehension, Expression, NodeId};
use crate::checked::{Checked, Reference};
use crate::declarations::{Declarations, Meaning};
use crate::parser::Refused;
use crate::source::{Issues, Source, UndefinedField};
use crate::types::Type;
use unify::{Substitutions, is_dynamic, unwrap_optional};

/// The maximum number of names in a type.
///
/// Each step of a chain such as `x.map(a, {a: a}).map(b, {b: b})` doubles the size of the type; kube-apiserver runs out
/// of memory on long chains.
const MAX_TYPE_SIZE: usize = 20_000;

/// Type-checks a tree and adds errors to `issues`.
pub(crate) fn check(
    ast: Ast,
    source: &Source<'_>,
    declarations: &Declarations,
    issues: &mut Issues,
) -> Result<Checked, Refused> {
    let count = ast.nodes.len();
    let root = ast.root;
    let mut checker = Checker {
        types: vec![Type::Error; count],
        references: vec![None; count],
        ast,
        declarations,
        source,
        issues,
        scopes: Vec::new(),
        substitutions: Substitutions::default(),
        compare_across_types: declarations.compare_across_types,
        too_large: false,
    };
    checker.check(root);
    let Checker { ast, mut types, references, substitutions, too_large, .. } = checker;
    if too_large {
        return Err(Refused::Unsupported("the type of an expression is too large"));
    }
    if !issues.is_empty() {
        return Err(Refused::Issues);
    }
    for of in &mut types {
        *of = substitutions.substitute(of, true);
    }
    Ok(Checked { ast, types, references })
}

/// How an expression uses a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Reads the value, as in `a.b`.
    Read,
    /// Tests whether the value exists, as in `has(a.b)`.
    Test,
    /// Reads the value if it exists, as in `a.?b`.
    Optional,
}

struct Checker<'d, 's> {
    ast: Ast,
    types: Vec<Type>,
    references: Vec<Option<Reference>>,
    declarations: &'d Declarations,
    source: &'s Source<'s>,
    issues: &'s mut Issues,
    /// The variables of the enclosing comprehensions, innermost last.
    scopes: Vec<(String, Type)>,
    substitutions: Substitutions,
    compare_across_types: bool,
    too_large: bool,
}

impl Checker<'_, '_> {
    fn check(&mut self, node: NodeId) {
        if self.too_large {
            return;
        }
        // The expression is moved out of the tree while its children are checked, because the checker may rewrite them.
        let Some(place) = self.ast.nodes.get_mut(node.0 as usize) else { return };
        let mut expression = std::mem::replace(&mut place.expression, Expression::Null);
        let of = match &mut expression {
            Expression::Null => Type::Null,
            Expression::Bool(_) => Type::Bool,
            Expression::Int(_) => Type::Int,
            Expression::Uint(_) => Type::Uint,
            Expression::Double(_) => Type::Double,
            Expression::String(_) => Type::String,
            Expression::Bytes(_) => Type::Bytes,
            Expression::Ident(_) => self.ident(node, &mut expression),
            Expression::Select { .. } => self.select(node, &mut expression),
            Expression::Call { .. } => self.call(node, &mut expression),
            Expression::List { elements, optional } => self.list(elements, optional),
            Expression::Map(entries) => self.map(entries),
            Expression::Struct { name, fields } => self.message(node, name, fields),
            Expression::Comprehension(comprehension) => self.comprehension(comprehension),
        };
        if size(&of, MAX_TYPE_SIZE).is_none() {
            self.too_large = true;
        }
        if let Some(place) = self.ast.nodes.get_mut(node.0 as usize) {
            place.expression = expression;
        }
        if let Some(place) = self.types.get_mut(node.0 as usize) {
            *place = of;
        }
    }

    fn type_of(&self, node: NodeId) -> &Type {
        self.types.get(node.0 as usize).unwrap_or(&Type::Error)
    }

    fn substituted(&self, node: NodeId) -> Type {
        self.substitutions.substitute(self.type_of(node), false)
    }

    fn refer(&mut self, node: NodeId, reference: Reference) {
        if let Some(place) = self.references.get_mut(node.0 as usize) {
            *place = Some(reference);
        }
    }

    fn report(&mut self, node: NodeId, message: impl Into<String>) {
        let offset = self.ast.offset(node);
        self.issues.add(self.source, offset, message);
    }

    fn undeclared(&mut self, node: NodeId, name: &str) -> Type {
        let container = Arc::clone(&self.declarations.container);
        self.report(node, format!("undeclared reference to '{name}' (in container '{container}')"));
        Type::Error
    }

    fn mismatch(&mut self, node: NodeId, expected: &Type, found: &Type) {
        self.report(node, format!("expected type '{expected}' but found '{found}'"));
    }

    /// Returns the type of a comprehension variable, or `None` if no enclosing comprehension declares the name.
    fn local(&self, name: &str) -> Option<&Type> {
        let name = name.strip_prefix('.').unwrap_or(name);
        self.scopes.iter().rev().find(|(known, _)| known == name).map(|(_, of)| of)
    }

    fn ident(&mut self, node: NodeId, expression: &mut Expression) -> Type {
        let Expression::Ident(name) = expression else { return Type::Error };
        let local = self.local(name).cloned();
        let shadowed = local.is_some();
        if let Some(of) = local.filter(|_| !name.starts_with('.')) {
            self.refer(node, Reference::Variable(name.as_str().into()));
            return of;
        }
        let name = std::mem::take(name);
        self.global(node, &name, shadowed, expression).unwrap_or_else(|| {
            *expression = Expression::Ident(name.clone());
            self.undeclared(node, &name)
        })
    }

    /// Returns the type of a name declared in the environment, and replaces `expression` with the full name or the
    /// constant.
    fn global(
        &mut self,
        node: NodeId,
        name: &str,
        shadowed: bool,
        expression: &mut Expression,
    ) -> Option<Type> {
        let (full, meaning) = self.declarations.global(name)?;
        *expression = Expression::Ident(if shadowed { format!(".{full}") } else { full.to_string() });
        Some(match meaning {
            Meaning::Variable(of) => {
                self.refer(node, Reference::Variable(full));
                of
            }
            Meaning::Type(named) => {
                let reference =
                    if named.has_value { Reference::Type(named.of) } else { Reference::Variable(full) };
                self.refer(node, reference);
                Type::Type(Arc::new(named.as_value))
            }
            Meaning::Constant(value) => {
                *expression = Expression::Int(value);
                self.refer(node, Reference::Constant);
                Type::Int
            }
        })
    }

    fn select(&mut self, node: NodeId, expression: &mut Expression) -> Type {
        let Expression::Select { operand, field, test } = expression else { return Type::Error };
        if !*test
            && let Some((name, first)) = self.qualified_name(*operand, field)
            && self.declarations.can_qualify(&first)
        {
            let shadowed = self.local(&first).is_some();
            if (!shadowed || first.starts_with('.'))
                && let Some(of) = self.global(node, &name, shadowed, expression)
            {
                return of;
            }
        }
        let Expression::Select { operand, field, test } = expression else { return Type::Error };
        let (operand, test) = (*operand, *test);
        let access = if test { Access::Test } else { Access::Read };
        let of = self.field(node, operand, field, access);
        if test { Type::Bool } else { self.substitutions.substitute(&of, false) }
    }

    /// Returns `operand.field` as a qualified name, and the name's first part, or `None` if the operand is not a name.
    fn qualified_name(&self, operand: NodeId, field: &str) -> Option<(String, String)> {
        let mut parts = vec![field];
        let mut at = operand;
        loop {
            match self.ast.expression(at) {
                Expression::Select { operand, field, test: false } => {
                    parts.push(field);
                    at = *operand;
                }
                Expression::Ident(name) => {
                    parts.push(name);
                    let first = name.clone();
                    parts.reverse();
                    return Some((parts.join("."), first));
                }
                _ => return None,
            }
        }
    }

    /// Returns the type of `operand.field`, and reports an error if the operand cannot have the field.
    fn field(&mut self, node: NodeId, operand: NodeId, field: &str, access: Access) -> Type {
        self.check(operand);
        let operand = self.substituted(operand);
        let inner = unwrap_optional(&operand);
        let target = inner.unwrap_or(&operand);
        let of = match target {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(name) => self.field_of(name, field).unwrap_or_else(|message| {
                self.undefined(node, name, field, access, message);
                Type::Error
            }),
            Type::Variable(_) | Type::Parameter(_) => {
                self.substitutions.fits(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            _ => {
                self.report(node, format!("type '{target}' does not support field selection"));
                Type::Dyn
            }
        };
        if inner.is_some() || access == Access::Optional { Type::optional(of) } else { of }
    }

    /// Returns the type of a message's field, or an error if the field is not declared.
    fn field_of(&self, message: &str, field: &str) -> Result<Type, String> {
        if let Some(of) = self.declarations.patch_field(message, field) {
            return Ok(of);
        }
        let Some(object) = self.declarations.objects.get(message) else {
            return Err(format!("unexpected failed resolution of '{message}'"));
        };
        object.field(field).cloned().ok_or_else(|| format!("undefined field '{field}'"))
    }

    /// Reports that an object type does not declare a field.
    fn undefined(&mut self, node: NodeId, object: &Arc<str>, field: &str, access: Access, message: String) {
        let is_tested = access != Access::Read;
        let undefined = UndefinedField { object: Arc::clone(object), field: field.into(), is_tested };
        let offset = self.ast.offset(node);
        self.issues.add_undefined(self.source, offset, message, undefined);
    }

    fn comprehension(&mut self, it: &Comprehension) -> Type {
        self.check(it.range);
        self.check(it.initial);
        let range = self.substituted(it.range);
        let accumulator = self.type_of(it.initial).clone();
        let outside = self.scopes.len();
        // cel-go does not filter the overloads of comparisons in the scope of a comprehension, nor in the expressions
        // after it.
        self.compare_across_types = true;
        self.scopes.push((it.accumulator.clone(), accumulator.clone()));
        let two = it.second_variable.is_some();
        let (first, second) = match &range {
            Type::List(element) if two => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Dyn),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error | Type::Variable(_) | Type::Parameter(_) => {
                self.substitutions.fits(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                let allowed = "(must be list, map, or dynamic)";
                let message =
                    format!("expression of type '{range}' cannot be range of a comprehension {allowed}");
                self.report(it.range, message);
                (Type::Error, Type::Error)
            }
        };
        let around = self.scopes.len();
        self.scopes.push((it.variable.clone(), first));
        if let Some(name) = &it.second_variable {
            self.scopes.push((name.clone(), second));
        }
        self.check(it.condition);
        self.assert(it.condition, &Type::Bool);
        self.check(it.step);
        self.assert(it.step, &accumulator);
        self.scopes.truncate(around);
        self.check(it.result);
        self.scopes.truncate(outside);
        self.substituted(it.result)
    }

    /// Reports an error if a node does not have the expected type.
    fn assert(&mut self, node: NodeId, expected: &Type) {
        let found = self.type_of(node).clone();
        if !self.substitutions.fits(expected, &found) {
            self.mismatch(node, expected, &found);
        }
    }

    /// Returns the common type of a literal's current and previous elements, or `dyn` if they do not have one.
    fn join(&mut self, so_far: Option<Type>, current: Type) -> Type {
        match so_far {
            None => current,
            Some(so_far) if self.substitutions.fits(&so_far, &current) => unify::joined(so_far, current),
            Some(_) => Type::Dyn,
        }
    }

    /// Returns the type of the value in `?element`, and reports an error if the element is not optional.
    fn unwrapped(&mut self, node: NodeId) -> Type {
        let of = self.type_of(node).clone();
        if let Some(inner) = unwrap_optional(&of) {
            return inner.clone();
        }
        if !is_dynamic(&of) {
            self.mismatch(node, &Type::optional(of.clone()), &of);
        }
        of
    }
}

/// Returns the number of names in a type, or `None` if the number exceeds `limit`.
fn size(of: &Type, limit: usize) -> Option<usize> {
    let mut count = 1;
    let mut add = |inner: &Type| {
        count += size(inner, limit.checked_sub(count)?)?;
        Some(())
    };
    match of {
        Type::List(inner) | Type::Type(inner) => add(inner)?,
        Type::Map(key, value) => {
            add(key)?;
            add(value)?;
        }
        Type::Opaque(_, parameters) => parameters.iter().try_for_each(add)?,
        _ => {}
    }
    (count <= limit).then_some(count)
}
