//! Reports errors that the grammar does not cover. Visits only the part of the text that could be parsed.
//!
//! Source: cel-go parser/parser.go, the visitor.

use super::rules::{Label, Rule, Slot};
use super::tokens::Tokens;
use super::tree::{Leaf, Tree};
use crate::ast::{Entry, Expression, NodeId};
use crate::parser::grammar::RESERVED;
use crate::parser::{Abort, Expander, MAX_RECURSION_DEPTH, Syntax, tree};
use crate::source::Source;

/// The offset of nodes without a position.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Finds the errors in a tree and adds them to `tokens`.
pub(super) fn visit<'t>(tree: &Tree, tokens: &mut Tokens<'_, 't>, source: &Source<'t>, syntax: Syntax<'_>) {
    let expander = Expander {
        tree: tree::Tree::default(),
        macros: syntax.macros,
        wrongs: Vec::new(),
        source: source.text,
    };
    let mut visitor = Visitor { expander, tokens, optional: syntax.optional(), depth: 0 };
    let too_deep = visitor.maybe(tree.tree(Slot::First)).is_err();
    let wrongs = visitor.expander.wrongs;
    for (offset, message) in wrongs {
        tokens.report_at(offset, message);
    }
    if too_deep {
        tokens.report("max recursion depth exceeded".to_owned());
    }
}

struct Visitor<'v, 'e, 't, 's> {
    expander: Expander<'e, 't>,
    tokens: &'v mut Tokens<'s, 't>,
    optional: bool,
    depth: u32,
}

impl Visitor<'_, '_, '_, '_> {
    /// Returns the placeholder for a missing rule.
    fn nothing(&mut self) -> NodeId {
        self.expander.tree.add(NOWHERE, Expression::Null)
    }

    /// Returns the placeholder for an incomplete rule.
    fn unfinished(&mut self, tree: &Tree) -> NodeId {
        let offset = self.start(tree);
        self.expander.tree.add(offset, Expression::Null)
    }

    fn maybe(&mut self, tree: Option<&Tree>) -> Result<NodeId, Abort> {
        match tree.and_then(innermost) {
            Some(tree) => self.node(tree),
            None => Ok(self.nothing()),
        }
    }

    fn offset(&mut self, leaf: Option<Leaf>) -> u32 {
        match leaf {
            Some(Leaf::Token(index)) => self.tokens.get(index).offset,
            Some(Leaf::Missing) | None => NOWHERE,
        }
    }

    fn text(&mut self, leaf: Leaf) -> &str {
        match leaf {
            Leaf::Token(index) => {
                let token = self.tokens.get(index);
                self.expander.source.get(token.start as usize..token.end as usize).unwrap_or_default()
            }
            Leaf::Missing => "<missing undefined>",
        }
    }

    fn start(&mut self, tree: &Tree) -> u32 {
        self.tokens.get(tree.start).offset
    }

    fn wrong(&mut self, tree: &Tree, message: impl Into<String>) -> NodeId {
        let offset = self.start(tree);
        self.expander.wrong(offset, message)
    }

    fn node(&mut self, tree: &Tree) -> Result<NodeId, Abort> {
        let counts = matches!(tree.rule, Rule::Expr | Rule::Relation | Rule::Calc)
            || matches!(tree.label, Label::Select | Label::MemberCall | Label::Index);
        if !counts {
            return self.uncounted(tree);
        }
        self.depth += 1;
        if self.depth > MAX_RECURSION_DEPTH {
            return Err(Abort::Depth);
        }
        let node = self.uncounted(tree);
        self.depth -= 1;
        node
    }

    fn global(&mut self, offset: u32, function: &str, arguments: Vec<NodeId>) -> NodeId {
        let call = Expression::Call { function: function.to_owned(), target: None, arguments };
        self.expander.tree.add(offset, call)
    }

    fn uncounted(&mut self, tree: &Tree) -> Result<NodeId, Abort> {
        match tree.rule {
            Rule::Expr | Rule::Relation | Rule::Calc => {
                let mut operands = Vec::new();
                for slot in [Slot::First, Slot::Second, Slot::Third] {
                    operands.push(self.maybe(tree.tree(slot))?);
                }
                let offset = self.offset(tree.leaf(Slot::Operator));
                Ok(self.global(offset, "operator", operands))
            }
            Rule::ConditionalOr | Rule::ConditionalAnd => {
                let mut operands = vec![self.maybe(tree.tree(Slot::First))?];
                let rest: Vec<_> = tree.trees(Slot::Second).collect();
                for index in 0..tree.leaves(Slot::Operator).count() {
                    let Some(operand) = rest.get(index) else {
                        let operator = if tree.rule == Rule::ConditionalOr { "||" } else { "&&" };
                        return Ok(self.wrong(tree, format!("unexpected character, wanted '{operator}'")));
                    };
                    operands.push(self.maybe(Some(operand))?);
                }
                let operators: Vec<_> = tree.leaves(Slot::Operator).collect();
                let offset = self.offset(operators.get(operators.len() / 2).copied());
                Ok(self.global(offset, "operator", operands))
            }
            Rule::Unary => match tree.label {
                Label::Not | Label::Negate => {
                    let operand = self.maybe(tree.tree(Slot::First))?;
                    if tree.leaves(Slot::Operator).count().is_multiple_of(2) {
                        return Ok(operand);
                    }
                    let offset = self.offset(tree.leaf(Slot::Operator));
                    Ok(self.global(offset, "operator", vec![operand]))
                }
                _ => Ok(self.unfinished(tree)),
            },
            Rule::Member => self.member(tree),
            Rule::Primary => self.primary(tree),
            Rule::Literal => Ok(self.literal(tree)),
            _ => Ok(self.nothing()),
        }
    }

    fn member(&mut self, tree: &Tree) -> Result<NodeId, Abort> {
        let operand = self.maybe(tree.tree(Slot::First))?;
        let operator = tree.leaf(Slot::Operator);
        match tree.label {
            Label::Select => {
                let (Some(name), Some(_)) = (tree.tree(Slot::Name), operator) else {
                    return Ok(self.unfinished(tree));
                };
                let field = self.field(name).unwrap_or_else(|message| {
                    self.wrong(name, message);
                    String::new()
                });
                let offset = self.offset(operator);
                if tree.leaf(Slot::Optional).is_none() {
                    let select = Expression::Select { operand, field, test: false };
                    return Ok(self.expander.tree.add(offset, select));
                }
                if !self.optional {
                    return Ok(self.expander.wrong(offset, "unsupported syntax '.?'"));
                }
                Ok(self.global(offset, "_?._", vec![operand]))
            }
            Label::MemberCall => {
                let Some(name) = tree.leaf(Slot::Name) else { return Ok(self.unfinished(tree)) };
                let name = self.text(name).to_owned();
                let arguments = self.arguments(tree)?;
                let offset = self.offset(tree.leaf(Slot::Open));
                self.expander.call(offset, &name, Some(operand), arguments)
            }
            Label::Index => {
                if operator.is_none() {
                    return Ok(self.unfinished(tree));
                }
                let index = self.maybe(tree.tree(Slot::Second))?;
                let offset = self.offset(operator);
                if tree.leaf(Slot::Optional).is_some() && !self.optional {
                    return Ok(self.expander.wrong(offset, "unsupported syntax '[?'"));
                }
                Ok(self.global(offset, "_[_]", vec![operand, index]))
            }
            _ => Ok(operand),
        }
    }

    /// Returns the name of a field, without the backticks of an escaped name.
    fn field(&mut self, name: &Tree) -> Result<String, &'static str> {
        match (name.label, name.leaf(Slot::Name)) {
            (Label::SimpleIdent, Some(leaf)) => Ok(self.text(leaf).to_owned()),
            (Label::EscapedIdent, Some(leaf)) => Ok(self.text(leaf).trim_matches('`').to_owned()),
            _ => Err("unsupported ident kind"),
        }
    }

    fn arguments(&mut self, tree: &Tree) -> Result<Vec<NodeId>, Abort> {
        let Some(list) = tree.tree(Slot::Arguments) else { return Ok(Vec::new()) };
        list.trees(Slot::Arguments).map(|argument| self.maybe(Some(argument))).collect()
    }

    fn primary(&mut self, tree: &Tree) -> Result<NodeId, Abort> {
        match tree.label {
            Label::Ident | Label::GlobalCall => {
                let Some(leaf) = tree.leaf(Slot::Name) else { return Ok(self.unfinished(tree)) };
                let name = self.text(leaf).to_owned();
                if RESERVED.contains(&name.as_str()) {
                    return Ok(self.wrong(tree, format!("reserved identifier: {name}")));
                }
                let dot = if tree.leaf(Slot::Leading).is_some() { "." } else { "" };
                let name = format!("{dot}{name}");
                if tree.label == Label::Ident {
                    let offset = self.offset(Some(leaf));
                    return Ok(self.expander.tree.add(offset, Expression::Ident(name)));
                }
                let arguments = self.arguments(tree)?;
                let offset = self.offset(tree.leaf(Slot::Operator));
                self.expander.call(offset, &name, None, arguments)
            }
            Label::CreateList => self.list(tree),
            Label::CreateMap => self.map(tree),
            Label::CreateMessage => self.message(tree),
            _ => Ok(self.nothing()),
        }
    }

    fn list(&mut self, tree: &Tree) -> Result<NodeId, Abort> {
        let mut elements = Vec::new();
        if let Some(list) = tree.tree(Slot::Arguments) {
            for element in list.trees(Slot::Values) {
                elements.push(self.maybe(element.tree(Slot::First))?);
                self.allow_optional(element);
            }
        }
        let offset = self.offset(tree.leaf(Slot::Operator));
        Ok(self.expander.tree.add(offset, Expression::List { elements, optional: Vec::new() }))
    }

    fn allow_optional(&mut self, tree: &Tree) -> bool {
        let question = tree.leaf(Slot::Optional).filter(|_| !self.optional);
        if question.is_some() {
            let offset = self.offset(question);
            self.expander.wrong(offset, "unsupported syntax '?'");
        }
        question.is_none()
    }

    fn map(&mut self, tree: &Tree) -> Result<NodeId, Abort> {
        if let Some(list) = tree.tree(Slot::Arguments) {
            let keys: Vec<_> = list.trees(Slot::Keys).collect();
            let values: Vec<_> = list.trees(Slot::Values).collect();
            for index in 0..list.leaves(Slot::Colons).count() {
                let (Some(key), Some(value)) = (keys.get(index), values.get(index)) else { break };
                if self.allow_optional(key) {
                    self.maybe(key.tree(Slot::First))?;
                    self.maybe(Some(value))?;
                }
            }
        }
        let offset = self.offset(tree.leaf(Slot::Operator));
        Ok(self.expander.tree.add(offset, Expression::Map(Vec::<Entry<NodeId>>::new())))
    }

    fn message(&mut self, tree: &Tree) -> Result<NodeId, Abort> {
        if let Some(list) = tree.tree(Slot::Arguments) {
            let values: Vec<_> = list.trees(Slot::Values).collect();
            let colons = list.leaves(Slot::Colons).count();
            for (index, field) in list.trees(Slot::Keys).enumerate() {
                let Some(value) = values.get(index).filter(|_| index < colons) else { break };
                if !self.allow_optional(field) {
                    continue;
                }
                let name =
                    field.tree(Slot::Name).map_or(Err("unsupported ident kind"), |name| self.field(name));
                match name {
                    Ok(_) => drop(self.maybe(Some(value))?),
                    Err(message) => drop(self.wrong(list, message)),
                }
            }
        }
        let offset = self.offset(tree.leaf(Slot::Operator));
        Ok(self.expander.tree.add(offset, Expression::Null))
    }

    fn literal(&mut self, tree: &Tree) -> NodeId {
        let Some(Leaf::Token(value)) = tree.leaf(Slot::Value) else { return self.nothing() };
        let sign = match tree.leaf(Slot::Sign) {
            Some(Leaf::Token(sign)) => Some(self.tokens.get(sign)),
            _ => None,
        };
        let value = self.tokens.get(value);
        self.expander.literal(value, sign)
    }
}

/// Returns the innermost significant rule: rules that only contain another one are skipped.
///
/// Source: cel-go parser/parser.go, `unnest`.
fn innermost(tree: &Tree) -> Option<&Tree> {
    let mut at = tree;
    loop {
        let has_operator = at.leaf(Slot::Operator).is_some();
        at = match at.rule {
            Rule::Expr | Rule::ConditionalOr | Rule::ConditionalAnd if !has_operator => {
                at.tree(Slot::First)?
            }
            Rule::Relation if !has_operator => at.tree(Slot::First).filter(|it| it.rule == Rule::Calc)?,
            Rule::Calc if !has_operator => at.tree(Slot::First).filter(|it| it.rule == Rule::Unary)?,
            Rule::Unary | Rule::Member if at.label == Label::Other => at.tree(Slot::First)?,
            Rule::Primary if matches!(at.label, Label::Nested | Label::Other) => at.tree(Slot::First)?,
            _ => return Some(at),
        };
    }
}
