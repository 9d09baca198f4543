//! Creates the nodes of a syntax tree.

use super::Abort;
use crate::ast::{Ast, Expression, Node, NodeId};
use crate::source::narrow;

/// The maximum number of nodes.
///
/// `optMap` and `optFlatMap` double their target, so a short expression can expand to a tree that exhausts memory, even
/// in kube-apiserver.
const MAX_NODES: usize = 1_000_000;

/// The nodes created so far.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    depths: Vec<u32>,
}

impl Tree {
    /// Adds a node. Its children must already be in the tree.
    pub(super) fn add(&mut self, offset: u32, expression: Expression) -> NodeId {
        let mut below = 0;
        expression.children(|child| {
            below = below.max(self.depths.get(child.0 as usize).copied().unwrap_or_default());
        });
        let index = narrow(self.nodes.len());
        self.nodes.push(Node { offset: Some(offset), expression });
        self.depths.push(below + 1);
        NodeId(index)
    }

    /// Returns the expression of a node, or `Null` if the tree does not contain the node.
    pub(super) fn expression(&self, id: NodeId) -> &Expression {
        self.nodes.get(id.0 as usize).map_or(&Expression::Null, |node| &node.expression)
    }

    /// Returns the offset of a node, in code points.
    pub(super) fn offset(&self, id: NodeId) -> u32 {
        self.nodes.get(id.0 as usize).and_then(|node| node.offset).unwrap_or_default()
    }

    /// Copies a node and its descendants; the copies keep the offsets.
    pub(super) fn copy(&mut self, id: NodeId) -> Result<NodeId, Abort> {
        // Children always have lower indices than their parents, so one walk from high to low indices finds
        // all descendants of a node, and they are copied on the way back.
        let mut wanted = vec![id];
        let mut next = 0;
        while let Some(found) = wanted.get(next).copied() {
            self.expression(found).children(|child| wanted.push(child));
            next += 1;
            if self.nodes.len() + wanted.len() > MAX_NODES {
                return Err(Abort::TooManyNodes);
            }
        }
        wanted.sort_by_key(|found| found.0);
        let mut copies = Vec::with_capacity(wanted.len());
        for original in &wanted {
            let mut expression = self.expression(*original).clone();
            expression.replace_children(|child| match wanted.binary_search_by_key(&child.0, |one| one.0) {
                Ok(index) => copies.get(index).copied().unwrap_or(child),
                Err(_) => child,
            });
            let offset = self.offset(*original);
            copies.push(self.add(offset, expression));
        }
        Ok(copies.last().copied().unwrap_or(id))
    }

    /// Returns the complete tree.
    pub(super) fn finish(self, source: &str, root: NodeId) -> Ast {
        let depth = self.depths.get(root.0 as usize).copied().unwrap_or_default();
        Ast { source: source.to_owned(), nodes: self.nodes, root, depth }
    }
}
