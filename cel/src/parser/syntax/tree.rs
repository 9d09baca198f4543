//! The partial parse tree of an expression with errors.

use super::rules::{Label, Rule, Slot};

/// A rule with its parsed parts.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) rule: Rule,
    pub(super) label: Label,
    /// The index of the first token of the rule.
    pub(super) start: usize,
    pub(super) children: Vec<(Slot, Child)>,
}

#[derive(Debug)]
pub(super) enum Child {
    Leaf(Leaf),
    Tree(Box<Tree>),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Leaf {
    Token(usize),
    /// A token that is missing from the text.
    Missing,
}

impl Tree {
    pub(super) fn new(rule: Rule, label: Label, start: usize) -> Self {
        Self { rule, label, start, children: Vec::new() }
    }

    /// Makes this tree the first operand of a new tree of the same rule.
    pub(super) fn wrap(&mut self, label: Label) {
        let around = Self::new(self.rule, label, self.start);
        let inner = std::mem::replace(self, around);
        self.children.push((Slot::First, Child::Tree(Box::new(inner))));
    }

    pub(super) fn leaves(&self, slot: Slot) -> impl Iterator<Item = Leaf> {
        self.children.iter().filter_map(move |(at, child)| match child {
            Child::Leaf(leaf) if *at == slot => Some(*leaf),
            _ => None,
        })
    }

    pub(super) fn leaf(&self, slot: Slot) -> Option<Leaf> {
        self.leaves(slot).next()
    }

    pub(super) fn trees(&self, slot: Slot) -> impl Iterator<Item = &Tree> {
        self.children.iter().filter_map(move |(at, child)| match child {
            Child::Tree(tree) if *at == slot => Some(tree.as_ref()),
            _ => None,
        })
    }

    pub(super) fn tree(&self, slot: Slot) -> Option<&Tree> {
        self.trees(slot).next()
    }
}
