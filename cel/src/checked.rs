//! A checked tree: what the checker hands to the planner.

use std::sync::Arc;

use crate::ast::{Ast, NodeId};
use crate::function::Overload;
use crate::types::Type;

/// A tree with a type for each node and the meaning of each name.
///
/// The checker rewrites the tree where a name turns out to be qualified, as cel-go's does: a selection that names a
/// variable or a type becomes an [`Ident`](crate::ast::Expression::Ident), a member call of a qualified function such as
/// `ip.isCanonical(x)` a call without target, and struct literals get the full name of their type.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    /// The tree.
    pub(crate) ast: Ast,
    /// The type of each node, by [`NodeId`].
    pub(crate) types: Vec<Type>,
    /// What each name or call means, by [`NodeId`]; none for nodes that are neither, and for variables of
    /// comprehensions as for any other variable [`Reference::Variable`].
    pub(crate) references: Vec<Option<Reference>>,
}

/// What a name or call means.
#[derive(Clone, Debug)]
pub(crate) enum Reference {
    /// A variable of the environment or of a comprehension, by its full name.
    Variable(Arc<str>),
    /// The name of a type, which is a constant.
    Type(Type),
    /// The name of a constant, which the tree has instead.
    Constant,
    /// The overloads that can apply at run time, in the order of declaration.
    Overloads(Vec<Arc<Overload>>),
}

impl Checked {
    /// The type of a node.
    pub(crate) fn type_of(&self, node: NodeId) -> &Type {
        self.types.get(node.0 as usize).unwrap_or(&Type::Error)
    }

    /// What a name or call means.
    pub(crate) fn reference(&self, node: NodeId) -> Option<&Reference> {
        self.references.get(node.0 as usize).and_then(Option::as_ref)
    }
}
