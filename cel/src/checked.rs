//! A checked tree: the checker's output and the planner's input.

use std::sync::Arc;

use crate::ast::{Ast, NodeId};
use crate::function::Overload;
use crate::types::Type;

/// A tree with a type for each node and the meaning of each name.
///
/// As in cel-go, the checker rewrites the tree for qualified names: a selection that names a variable or a type becomes
/// an [`Ident`](crate::ast::Expression::Ident), a member call of a qualified function such as `ip.isCanonical(x)`
/// becomes a call without a target, and struct literals get the full name of their type.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    /// The tree with the checker's changes.
    pub(crate) ast: Ast,
    /// The type of each node, by [`NodeId`].
    pub(crate) types: Vec<Type>,
    /// The meaning of each name or call, by [`NodeId`]; `None` for other nodes. Variables of comprehensions are
    /// [`Reference::Variable`] like any other variable.
    pub(crate) references: Vec<Option<Reference>>,
}

/// The declaration that a name or call refers to.
#[derive(Clone, Debug)]
pub(crate) enum Reference {
    /// A variable of the environment or of a comprehension, by its full name.
    Variable(Arc<str>),
    /// The name of a type, as a constant.
    Type(Type),
    /// The name of a constant. The checker has replaced the name with the value in the tree.
    Constant,
    /// The overloads that can apply at run time, in declaration order.
    Overloads(Vec<Arc<Overload>>),
}

impl Checked {
    /// Returns the type of a node, or [`Type::Error`] if the node does not have a recorded type.
    pub(crate) fn type_of(&self, node: NodeId) -> &Type {
        self.types.get(node.0 as usize).unwrap_or(&Type::Error)
    }

    /// Returns the meaning of a name or call, or `None` for other nodes.
    pub(crate) fn reference(&self, node: NodeId) -> Option<&Reference> {
        self.references.get(node.0 as usize).and_then(Option::as_ref)
    }
}
