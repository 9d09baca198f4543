//! Resolves the overloads of calls.
//!
//! Source: cel-go checker/checker.go, `checkCall`, `resolveOverload`.

use std::sync::Arc;

use super::unify::{Instance, is_dynamic, is_exact};
use super::{Access, Checker};
use crate::ast::{Expression, NodeId};
use crate::checked::Reference;
use crate::declarations::compares_across_types;
use crate::function::Function;
use crate::types::Type;

const SELECT_OPTIONAL: &str = "_?._";

impl Checker<'_, '_> {
    pub(super) fn call(&mut self, node: NodeId, expression: &mut Expression) -> Type {
        let Expression::Call { function, target, arguments } = expression else { return Type::Error };
        if function == SELECT_OPTIONAL {
            return self.select_optional(node, *target, arguments);
        }
        for argument in arguments.iter() {
            self.check(*argument);
        }
        let Some(receiver) = *target else {
            let Some(declared) = self.declarations.function(function) else {
                let function = function.clone();
                return self.undeclared(node, &function);
            };
            let declared = Arc::clone(declared);
            declared.name.clone_into(function);
            return self.resolve(node, &declared, None, arguments);
        };
        // `a.b.c()` is the function `a.b.c`, or the function `c` with the target `a.b`.
        if let Some((name, _)) = self.qualified_name(receiver, function)
            && let Some(declared) = self.declarations.function(&name)
        {
            let declared = Arc::clone(declared);
            declared.name.clone_into(function);
            *target = None;
            return self.resolve(node, &declared, None, arguments);
        }
        self.check(receiver);
        let Some(declared) = self.declarations.function(function) else {
            let function = function.clone();
            return self.undeclared(node, &function);
        };
        let declared = Arc::clone(declared);
        self.resolve(node, &declared, Some(receiver), arguments)
    }

    fn select_optional(&mut self, node: NodeId, target: Option<NodeId>, arguments: &[NodeId]) -> Type {
        let (None, [operand, field]) = (target, arguments) else { return Type::Error };
        let Expression::String(name) = self.ast.expression(*field).clone() else { return Type::Error };
        if let Some(place) = self.types.get_mut(field.0 as usize) {
            *place = Type::String;
        }
        let of = self.field(node, *operand, &name, Access::Optional);
        if let Some(declared) = self.declarations.function(SELECT_OPTIONAL) {
            self.refer(node, Reference::Overloads(declared.overloads.clone()));
        }
        self.substitutions.substitute(&of, false)
    }

    /// Finds all overloads whose parameters accept the arguments, and returns the type of the call.
    fn resolve(
        &mut self,
        node: NodeId,
        function: &Function,
        target: Option<NodeId>,
        arguments: &[NodeId],
    ) -> Type {
        let types: Vec<_> =
            target.iter().chain(arguments).map(|argument| self.type_of(*argument).clone()).collect();
        let mut result: Option<Type> = None;
        let mut fitting = Vec::new();
        for overload in &function.overloads {
            if overload.member != target.is_some()
                || (!self.compare_across_types && compares_across_types(overload))
            {
                continue;
            }
            if matches!(function.name, "_&&_" | "_||_") {
                let mut all_fit = true;
                for (argument, of) in arguments.iter().zip(&types) {
                    if !self.substitutions.fits(of, &Type::Bool) {
                        self.mismatch(*argument, &Type::Bool, of);
                        all_fit = false;
                    }
                }
                self.refer(node, Reference::Overloads(vec![Arc::clone(overload)]));
                return if all_fit { Type::Bool } else { Type::Error };
            }
            let mut instance = Instance::default();
            let declared = instance.instantiate(&mut self.substitutions, &overload.result);
            let parameters: Vec<_> = overload
                .parameters
                .iter()
                .map(|parameter| instance.instantiate(&mut self.substitutions, parameter))
                .collect();
            if self.substitutions.all_fit(types.iter(), &parameters) {
                fitting.push(Arc::clone(overload));
                let of = self.substitutions.substitute(&declared, false);
                result = Some(match result {
                    None => of,
                    Some(so_far) if is_dynamic(&so_far) || is_exact(&of, &so_far) => so_far,
                    Some(_) => Type::Dyn,
                });
            }
        }
        let Some(result) = result else {
            let text = self.signature(&types, target.is_some());
            let name = function.name;
            self.report(node, format!("found no matching overload for '{name}' applied to '{text}'"));
            return Type::Error;
        };
        self.refer(node, Reference::Overloads(fitting));
        result
    }

    /// Formats the types of arguments for error messages, such as `(int, string)` or `string.(int)`.
    ///
    /// Source: cel-go checker/format.go.
    fn signature(&self, types: &[Type], member: bool) -> String {
        let mut names: Vec<_> =
            types.iter().map(|of| self.substitutions.substitute(of, true).to_string()).collect();
        let target =
            if member && !names.is_empty() { format!("{}.", names.remove(0)) } else { String::new() };
        format!("{target}({})", names.join(", "))
    }
}
