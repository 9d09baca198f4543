//! Parses the rules of the grammar.
//!
//! Source: cel-go parser/gen/CEL.g4, the parser's rules, and parser/parser.go.

use super::lexer::{Kind, Token};
use super::{Abort, Expander, MAX_RECURSION_DEPTH};
use crate::ast::{Entry, Expression, NodeId};

/// The names that fields can have, but variables and functions cannot.
pub(crate) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// A parsed node, and the nesting depth of the operators below it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    pub(super) node: NodeId,
    pub(super) height: u32,
}

/// The recursive-descent parser.
pub(super) struct Parser<'s, 't, 'k> {
    expander: Expander<'s, 't>,
    optional: bool,
    tokens: &'k [Token],
    at: usize,
    /// The nesting depth of the rule `expr`.
    nested: u32,
    relations: u32,
    calculations: u32,
}

type Parsed = Result<Operand, Abort>;

impl<'s, 't, 'k> Parser<'s, 't, 'k> {
    pub(super) fn new(expander: Expander<'s, 't>, optional: bool, tokens: &'k [Token]) -> Self {
        Self { expander, optional, tokens, at: 0, nested: 0, relations: 0, calculations: 0 }
    }

    /// Parses `start: expr EOF`.
    pub(super) fn parse(mut self) -> Result<(Expander<'s, 't>, Operand), Abort> {
        let whole = self.expr()?;
        self.expect(Kind::End)?;
        Ok((self.expander, whole))
    }

    fn peek(&self, ahead: usize) -> Kind {
        self.tokens.get(self.at + ahead).map_or(Kind::End, |token| token.kind)
    }

    fn take(&mut self) -> Result<Token, Abort> {
        let token = self.tokens.get(self.at).copied().ok_or(Abort::Syntax)?;
        self.at += 1;
        Ok(token)
    }

    fn expect(&mut self, kind: Kind) -> Result<Token, Abort> {
        if self.peek(0) == kind { self.take() } else { Err(Abort::Syntax) }
    }

    fn take_if(&mut self, kind: Kind) -> Option<Token> {
        if self.peek(0) == kind { self.take().ok() } else { None }
    }

    fn text(&self, token: Token) -> &'t str {
        self.expander.source.get(token.start as usize..token.end as usize).unwrap_or_default()
    }

    /// Parses `conditionalOr ('?' conditionalOr ':' expr)?`.
    fn expr(&mut self) -> Parsed {
        self.nested += 1;
        if self.nested > MAX_RECURSION_DEPTH {
            return Err(Abort::Depth);
        }
        let condition = self.logic(Kind::Or)?;
        let whole = match self.take_if(Kind::Question) {
            None => condition,
            Some(operator) => {
                let truthy = self.logic(Kind::Or)?;
                self.expect(Kind::Colon)?;
                let falsy = self.expr()?;
                self.operation(operator, "_?_:_", &[condition, truthy, falsy])
            }
        };
        self.nested -= 1;
        Ok(whole)
    }

    /// Creates an operator call and adds one level of nesting.
    fn operation(&mut self, operator: Token, function: &str, operands: &[Operand]) -> Operand {
        let height = 1 + operands.iter().map(|operand| operand.height).max().unwrap_or_default();
        Operand { node: self.global(operator, function, operands), height }
    }

    fn global(&mut self, operator: Token, function: &str, operands: &[Operand]) -> NodeId {
        let arguments = operands.iter().map(|operand| operand.node).collect();
        let call = Expression::Call { function: function.to_owned(), target: None, arguments };
        self.expander.tree.add(operator.offset, call)
    }

    /// Parses `conditionalAnd ('||' conditionalAnd)*`, or `relation ('&&' relation)*`, into a balanced tree
    /// of terms.
    fn logic(&mut self, operator: Kind) -> Parsed {
        let term = |parser: &mut Self| {
            if operator == Kind::Or { parser.logic(Kind::And) } else { parser.relation() }
        };
        let first = term(self)?;
        if self.peek(0) != operator {
            return Ok(first);
        }
        let mut terms = vec![first];
        let mut operators = Vec::new();
        while let Some(token) = self.take_if(operator) {
            operators.push(token);
            terms.push(term(self)?);
        }
        let function = if operator == Kind::Or { "_||_" } else { "_&&_" };
        let height = terms.iter().map(|term| term.height).max().unwrap_or_default();
        Ok(Operand { node: self.balanced(function, &terms, &operators), height })
    }

    fn balanced(&mut self, function: &str, terms: &[Operand], operators: &[Token]) -> NodeId {
        let middle = operators.len() / 2;
        let Some(operator) = operators.get(middle).copied() else {
            return terms.first().map_or(NodeId(0), |term| term.node);
        };
        let (left_operators, right_operators) = operators.split_at(middle);
        let (left_terms, right_terms) = terms.split_at(middle + 1);
        let left = self.balanced(function, left_terms, left_operators);
        let right = self.balanced(function, right_terms, right_operators.get(1..).unwrap_or_default());
        let arguments = vec![left, right];
        let call = Expression::Call { function: function.to_owned(), target: None, arguments };
        self.expander.tree.add(operator.offset, call)
    }

    /// Parses `relation op relation`, from left to right.
    fn relation(&mut self) -> Parsed {
        let mut left = self.compared()?;
        loop {
            let function = match self.peek(0) {
                Kind::Less => "_<_",
                Kind::LessEquals => "_<=_",
                Kind::GreaterEquals => "_>=_",
                Kind::Greater => "_>_",
                Kind::Equals => "_==_",
                Kind::NotEquals => "_!=_",
                Kind::In => "@in",
                _ => return Ok(left),
            };
            let operator = self.take()?;
            // The right operand is a nested use of the rule.
            self.relations += 1;
            let right = self.compared();
            self.relations -= 1;
            left = self.operation(operator, function, &[left, right?]);
        }
    }

    fn compared(&mut self) -> Parsed {
        self.relations += 1;
        if self.relations > MAX_RECURSION_DEPTH {
            return Err(Abort::Depth);
        }
        let operand = self.calc(0);
        self.relations -= 1;
        operand
    }

    /// Parses `calc ('*' | '/' | '%') calc` and `calc ('+' | '-') calc`, from left to right.
    fn calc(&mut self, lowest: u8) -> Parsed {
        self.calculations += 1;
        if self.calculations > MAX_RECURSION_DEPTH {
            return Err(Abort::Depth);
        }
        let mut left = self.unary()?;
        loop {
            let (function, precedence) = match self.peek(0) {
                Kind::Star => ("_*_", 2),
                Kind::Slash => ("_/_", 2),
                Kind::Percent => ("_%_", 2),
                Kind::Plus => ("_+_", 1),
                Kind::Minus => ("_-_", 1),
                _ => break,
            };
            if precedence < lowest {
                break;
            }
            let operator = self.take()?;
            let right = self.calc(precedence + 1)?;
            left = self.operation(operator, function, &[left, right]);
        }
        self.calculations -= 1;
        Ok(left)
    }

    /// Parses `member`, `'!'+ member`, or `'-'+ member`.
    fn unary(&mut self) -> Parsed {
        let (kind, function) = match self.peek(0) {
            Kind::Exclamation => (Kind::Exclamation, "!_"),
            // A single minus sign directly before a number belongs to the number.
            Kind::Minus if !matches!(self.peek(1), Kind::Int | Kind::Double) => (Kind::Minus, "-_"),
            _ => return self.member(),
        };
        let operator = self.take()?;
        let mut count = 1;
        while self.take_if(kind).is_some() {
            count += 1;
        }
        let operand = self.member()?;
        if count % 2 == 0 {
            return Ok(operand);
        }
        Ok(Operand { node: self.global(operator, function, &[operand]), height: operand.height })
    }

    /// Parses a primary with its selections, calls, and indices.
    fn member(&mut self) -> Parsed {
        let mut operand = self.primary()?;
        loop {
            operand = match self.peek(0) {
                Kind::Dot => self.select(operand)?,
                Kind::LeftBracket => self.index(operand)?,
                _ => return Ok(operand),
            };
        }
    }

    fn select(&mut self, operand: Operand) -> Parsed {
        let dot = self.take()?;
        let optional = self.take_if(Kind::Question).is_some();
        let name = self.take()?;
        if name.kind == Kind::Ident && !optional && self.peek(0) == Kind::LeftParenthesis {
            let open = self.take()?;
            let arguments = self.arguments()?;
            let height = 1 + highest(&arguments).max(operand.height);
            let arguments = arguments.iter().map(|argument| argument.node).collect();
            let function = self.text(name);
            let node = self.expander.call(open.offset, function, Some(operand.node), arguments)?;
            return Ok(Operand { node, height });
        }
        let field = self.field(name)?;
        let height = operand.height + 1;
        let node = if !optional {
            let select = Expression::Select { operand: operand.node, field, test: false };
            self.expander.tree.add(dot.offset, select)
        } else if self.optional {
            let field = self.expander.tree.add(name.offset, Expression::String(field));
            let (function, arguments) = ("_?._".to_owned(), vec![operand.node, field]);
            self.expander.tree.add(dot.offset, Expression::Call { function, target: None, arguments })
        } else {
            self.expander.wrong(dot.offset, "unsupported syntax '.?'")
        };
        Ok(Operand { node, height })
    }

    /// Returns the name of a field. The name may be written in backticks.
    fn field(&self, name: Token) -> Result<String, Abort> {
        let text = self.text(name);
        match name.kind {
            Kind::Ident => Ok(text.to_owned()),
            Kind::EscapedIdent => Ok(text.trim_matches('`').to_owned()),
            _ => Err(Abort::Syntax),
        }
    }

    fn index(&mut self, operand: Operand) -> Parsed {
        let open = self.take()?;
        let optional = self.take_if(Kind::Question).is_some();
        let index = self.expr()?;
        self.expect(Kind::RightBracket)?;
        if optional && !self.optional {
            let node = self.expander.wrong(open.offset, "unsupported syntax '[?'");
            return Ok(Operand { node, height: 1 + operand.height.max(index.height) });
        }
        Ok(self.operation(open, if optional { "_[?_]" } else { "_[_]" }, &[operand, index]))
    }

    /// Parses `exprList? ')'`.
    fn arguments(&mut self) -> Result<Vec<Operand>, Abort> {
        let mut arguments = Vec::new();
        if self.take_if(Kind::RightParenthesis).is_some() {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expr()?);
            if self.take_if(Kind::Comma).is_none() {
                self.expect(Kind::RightParenthesis)?;
                return Ok(arguments);
            }
        }
    }

    fn primary(&mut self) -> Parsed {
        match self.peek(0) {
            Kind::Dot | Kind::Ident => self.name(),
            Kind::LeftParenthesis => {
                self.take()?;
                let nested = self.expr()?;
                self.expect(Kind::RightParenthesis)?;
                Ok(nested)
            }
            Kind::LeftBracket => self.list(),
            Kind::LeftBrace => self.map(),
            Kind::Minus => {
                let sign = self.take()?;
                match self.peek(0) {
                    Kind::Int | Kind::Double => self.literal(Some(sign)),
                    _ => Err(Abort::Syntax),
                }
            }
            Kind::Int
            | Kind::Uint
            | Kind::Double
            | Kind::String
            | Kind::Bytes
            | Kind::True
            | Kind::False
            | Kind::Null => self.literal(None),
            _ => Err(Abort::Syntax),
        }
    }

    fn literal(&mut self, sign: Option<Token>) -> Parsed {
        let token = self.take()?;
        Ok(Operand { node: self.expander.literal(token, sign), height: 0 })
    }

    /// Parses a variable, a call, or a message literal.
    fn name(&mut self) -> Parsed {
        let first = self.at;
        let leading = self.take_if(Kind::Dot);
        let name = self.expect(Kind::Ident)?;
        if self.opens_message() {
            self.at = first;
            return self.message();
        }
        let (dot, offset) = match leading {
            Some(dot) => (".", dot.offset),
            None => ("", name.offset),
        };
        let text = self.text(name);
        let reserved = RESERVED.contains(&text);
        let mut height = 0;
        let node = if let Some(open) = self.take_if(Kind::LeftParenthesis) {
            let arguments = self.arguments()?;
            if reserved {
                self.expander.wrong(offset, format!("reserved identifier: {text}"))
            } else {
                height = highest(&arguments);
                let arguments = arguments.iter().map(|argument| argument.node).collect();
                self.expander.call(open.offset, &format!("{dot}{text}"), None, arguments)?
            }
        } else if reserved {
            self.expander.wrong(offset, format!("reserved identifier: {text}"))
        } else {
            self.expander.tree.add(name.offset, Expression::Ident(format!("{dot}{text}")))
        };
        Ok(Operand { node, height })
    }

    /// Returns whether `('.' IDENTIFIER)* '{'` follows.
    fn opens_message(&self) -> bool {
        let mut ahead = 0;
        while self.peek(ahead) == Kind::Dot && self.peek(ahead + 1) == Kind::Ident {
            ahead += 2;
        }
        self.peek(ahead) == Kind::LeftBrace
    }

    fn message(&mut self) -> Parsed {
        let mut name = String::new();
        while self.peek(0) != Kind::LeftBrace {
            let token = self.take()?;
            name.push_str(self.text(token));
        }
        let open = self.take()?;
        let mut height = 0;
        let fields = self.elements(Kind::RightBrace, |parser| {
            let question = parser.take_if(Kind::Question);
            let name = parser.take()?;
            let key = parser.field(name)?;
            let colon = parser.expect(Kind::Colon)?;
            let value = parser.expr()?;
            height = height.max(value.height);
            parser.allow_optional(question);
            Ok(Entry { offset: Some(colon.offset), key, value: value.node, optional: question.is_some() })
        })?;
        let node = self.expander.tree.add(open.offset, Expression::Struct { name, fields });
        Ok(Operand { node, height })
    }

    /// Reports an error at a question mark if optional syntax is not enabled.
    fn allow_optional(&mut self, question: Option<Token>) {
        if let Some(question) = question.filter(|_| !self.optional) {
            self.expander.wrong(question.offset, "unsupported syntax '?'");
        }
    }

    /// Parses elements separated by commas, with an optional trailing comma, up to the closing bracket.
    fn elements<T>(
        &mut self,
        close: Kind,
        mut element: impl FnMut(&mut Self) -> Result<T, Abort>,
    ) -> Result<Vec<T>, Abort> {
        let mut elements = Vec::new();
        loop {
            if self.take_if(close).is_some() {
                return Ok(elements);
            }
            if elements.is_empty() && self.take_if(Kind::Comma).is_some() {
                self.expect(close)?;
                return Ok(elements);
            }
            elements.push(element(self)?);
            if self.take_if(Kind::Comma).is_none() {
                self.expect(close)?;
                return Ok(elements);
            }
        }
    }

    fn list(&mut self) -> Parsed {
        let open = self.take()?;
        let mut height = 0;
        let mut optional = Vec::new();
        let mut count = 0;
        let elements = self.elements(Kind::RightBracket, |parser| {
            let question = parser.take_if(Kind::Question);
            let element = parser.expr()?;
            height = height.max(element.height);
            parser.allow_optional(question);
            if question.is_some() {
                optional.push(count);
            }
            count += 1;
            Ok(element.node)
        })?;
        Ok(Operand {
            node: self.expander.tree.add(open.offset, Expression::List { elements, optional }),
            height,
        })
    }

    fn map(&mut self) -> Parsed {
        let open = self.take()?;
        let mut height = 0;
        let entries = self.elements(Kind::RightBrace, |parser| {
            let question = parser.take_if(Kind::Question);
            let key = parser.expr()?;
            let colon = parser.expect(Kind::Colon)?;
            let value = parser.expr()?;
            height = height.max(key.height).max(value.height);
            parser.allow_optional(question);
            Ok(Entry {
                offset: Some(colon.offset),
                key: key.node,
                value: value.node,
                optional: question.is_some(),
            })
        })?;
        Ok(Operand { node: self.expander.tree.add(open.offset, Expression::Map(entries)), height })
    }
}

fn highest(operands: &[Operand]) -> u32 {
    operands.iter().map(|operand| operand.height).max().unwrap_or_default()
}
