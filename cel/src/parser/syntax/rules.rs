//! The rules of the grammar.
//!
//! Source: cel-go parser/gen/CEL.g4, the parser's rules.

use crate::parser::lexer::Kind::{
    self, And, Bytes, Colon, Comma, Dot, Double, End, Equals, EscapedIdent, Exclamation, False, Greater,
    GreaterEquals, Ident, In, Int, LeftBrace, LeftBracket, LeftParenthesis, Less, LessEquals, Minus,
    NotEquals, Null, Or, Percent, Plus, Question, RightBrace, RightBracket, RightParenthesis, Slash, Star,
    String, True, Uint,
};

/// The rules of the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Rule {
    Start,
    Expr,
    ConditionalOr,
    ConditionalAnd,
    Relation,
    Calc,
    Unary,
    Member,
    Primary,
    ExprList,
    ListInit,
    FieldInitializerList,
    OptField,
    MapInitializerList,
    EscapeIdent,
    OptExpr,
    Literal,
}

pub(super) const RULES: usize = 17;

/// The role of a token or rule within its enclosing rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The token or rule does not have a role.
    None,
    Operator,
    Optional,
    Name,
    Open,
    Leading,
    Sign,
    Value,
    /// The first operand.
    First,
    Second,
    Third,
    Arguments,
    Keys,
    Colons,
    Values,
}

/// The labeled alternatives of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    None,
    Not,
    Negate,
    Select,
    MemberCall,
    Index,
    Ident,
    GlobalCall,
    Nested,
    CreateList,
    CreateMap,
    CreateMessage,
    SimpleIdent,
    EscapedIdent,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    /// An alternative that cannot fail, or that only refers to another rule.
    Other,
}

/// A part of a rule before states are assigned.
pub(super) enum Draft {
    Tokens(&'static [Kind], Slot),
    Rule(Rule, u8, Slot),
    Optional(&'static [Kind], Vec<Draft>),
    Loop { at_least_once: bool, first: Option<Kind>, parts: Vec<Draft> },
    Choice(Option<Vec<Vec<Kind>>>, Vec<(Label, Vec<Draft>)>),
    Recursion(Rule, Vec<(Label, u8, Vec<Draft>)>),
}

const FIRST_OF_EXPR: &[Kind] = &[
    LeftBracket,
    LeftBrace,
    LeftParenthesis,
    Dot,
    Minus,
    Exclamation,
    True,
    False,
    Null,
    Double,
    Int,
    Uint,
    String,
    Bytes,
    Ident,
];
const FIRST_OF_OPTIONAL_EXPR: &[Kind] = &[
    LeftBracket,
    LeftBrace,
    LeftParenthesis,
    Dot,
    Minus,
    Exclamation,
    Question,
    True,
    False,
    Null,
    Double,
    Int,
    Uint,
    String,
    Bytes,
    Ident,
];
const COMPARISONS: &[Kind] = &[Equals, NotEquals, In, Less, LessEquals, GreaterEquals, Greater];

fn token(kind: &'static [Kind]) -> Draft {
    Draft::Tokens(kind, Slot::None)
}

fn leading_dot() -> Draft {
    Draft::Optional(&[Dot], vec![Draft::Tokens(&[Dot], Slot::Leading)])
}

fn question() -> Draft {
    Draft::Optional(&[Question], vec![Draft::Tokens(&[Question], Slot::Optional)])
}

fn trailing_comma() -> Draft {
    Draft::Optional(&[Comma], vec![token(&[Comma])])
}

fn arguments() -> Draft {
    Draft::Optional(FIRST_OF_EXPR, vec![Draft::Rule(Rule::ExprList, 0, Slot::Arguments)])
}

/// Returns elements separated by commas; unless `decided_by_token` is set, a prediction detects a trailing comma.
fn separated(decided_by_token: bool, parts: fn() -> Vec<Draft>) -> Vec<Draft> {
    let mut all = parts();
    let mut more = vec![token(&[Comma])];
    more.extend(parts());
    all.push(Draft::Loop { at_least_once: false, first: decided_by_token.then_some(Comma), parts: more });
    all
}

fn logic(rule: Rule, operator: &'static [Kind], first: Kind) -> Vec<Draft> {
    let more = vec![Draft::Tokens(operator, Slot::Operator), Draft::Rule(rule, 0, Slot::Second)];
    vec![
        Draft::Rule(rule, 0, Slot::First),
        Draft::Loop { at_least_once: false, first: Some(first), parts: more },
    ]
}

fn literal(label: Label, kind: &'static [Kind]) -> (Label, Vec<Draft>) {
    (label, vec![Draft::Tokens(kind, Slot::Value)])
}

fn signed(label: Label, kind: &'static [Kind]) -> (Label, Vec<Draft>) {
    let sign = Draft::Optional(&[Minus], vec![Draft::Tokens(&[Minus], Slot::Sign)]);
    (label, vec![sign, Draft::Tokens(kind, Slot::Value)])
}

/// Returns the parts of a rule.
pub(super) fn draft(rule: Rule) -> Vec<Draft> {
    let one = |rule, slot| Draft::Rule(rule, 0, slot);
    match rule {
        Rule::Start => vec![one(Rule::Expr, Slot::First), token(&[End])],
        Rule::Expr => vec![
            one(Rule::ConditionalOr, Slot::First),
            Draft::Optional(
                &[Question],
                vec![
                    Draft::Tokens(&[Question], Slot::Operator),
                    one(Rule::ConditionalOr, Slot::Second),
                    token(&[Colon]),
                    one(Rule::Expr, Slot::Third),
                ],
            ),
        ],
        Rule::ConditionalOr => logic(Rule::ConditionalAnd, &[Or], Or),
        Rule::ConditionalAnd => logic(Rule::Relation, &[And], And),
        Rule::Relation => {
            let right = Draft::Rule(Rule::Relation, 2, Slot::Second);
            let operator = vec![Draft::Tokens(COMPARISONS, Slot::Operator), right];
            vec![Draft::Recursion(Rule::Calc, vec![(Label::None, 1, operator)])]
        }
        Rule::Calc => {
            let operators = vec![calculation(&[Star, Slash, Percent], 2), calculation(&[Plus, Minus], 1)];
            vec![Draft::Recursion(Rule::Unary, operators)]
        }
        Rule::Unary => vec![Draft::Choice(None, unary())],
        Rule::Member => vec![Draft::Recursion(Rule::Primary, member())],
        Rule::Primary => vec![Draft::Choice(None, primary())],
        Rule::ExprList => separated(true, || vec![Draft::Rule(Rule::Expr, 0, Slot::Arguments)]),
        Rule::ListInit => separated(false, || vec![Draft::Rule(Rule::OptExpr, 0, Slot::Values)]),
        Rule::FieldInitializerList => separated(false, || entry(Rule::OptField)),
        Rule::OptField => vec![question(), one(Rule::EscapeIdent, Slot::Name)],
        Rule::MapInitializerList => separated(false, || entry(Rule::OptExpr)),
        Rule::EscapeIdent => vec![Draft::Choice(
            Some(vec![vec![Ident], vec![EscapedIdent]]),
            vec![
                (Label::SimpleIdent, vec![Draft::Tokens(&[Ident], Slot::Name)]),
                (Label::EscapedIdent, vec![Draft::Tokens(&[EscapedIdent], Slot::Name)]),
            ],
        )],
        Rule::OptExpr => vec![question(), one(Rule::Expr, Slot::First)],
        Rule::Literal => vec![Draft::Choice(
            None,
            vec![
                signed(Label::Int, &[Int]),
                literal(Label::Uint, &[Uint]),
                signed(Label::Double, &[Double]),
                literal(Label::String, &[String]),
                literal(Label::Bytes, &[Bytes]),
                literal(Label::Other, &[True]),
                literal(Label::Other, &[False]),
                literal(Label::Other, &[Null]),
            ],
        )],
    }
}

fn entry(key: Rule) -> Vec<Draft> {
    vec![
        Draft::Rule(key, 0, Slot::Keys),
        Draft::Tokens(&[Colon], Slot::Colons),
        Draft::Rule(Rule::Expr, 0, Slot::Values),
    ]
}

/// Returns the binary operators of a precedence; their right operand must have a higher precedence.
fn calculation(kinds: &'static [Kind], precedence: u8) -> (Label, u8, Vec<Draft>) {
    let right = Draft::Rule(Rule::Calc, precedence + 1, Slot::Second);
    (Label::None, precedence, vec![Draft::Tokens(kinds, Slot::Operator), right])
}

fn unary() -> Vec<(Label, Vec<Draft>)> {
    let operand = || Draft::Rule(Rule::Member, 0, Slot::First);
    let operators = |kind, first| {
        let parts = vec![Draft::Tokens(kind, Slot::Operator)];
        vec![Draft::Loop { at_least_once: true, first, parts }, operand()]
    };
    vec![
        (Label::Other, vec![operand()]),
        (Label::Not, operators(&[Exclamation], Some(Exclamation))),
        (Label::Negate, operators(&[Minus], None)),
    ]
}

fn member() -> Vec<(Label, u8, Vec<Draft>)> {
    let dot = || Draft::Tokens(&[Dot], Slot::Operator);
    let select = vec![dot(), question(), Draft::Rule(Rule::EscapeIdent, 0, Slot::Name)];
    let call = vec![
        dot(),
        Draft::Tokens(&[Ident], Slot::Name),
        Draft::Tokens(&[LeftParenthesis], Slot::Open),
        arguments(),
        token(&[RightParenthesis]),
    ];
    let index = vec![
        Draft::Tokens(&[LeftBracket], Slot::Operator),
        question(),
        Draft::Rule(Rule::Expr, 0, Slot::Second),
        token(&[RightBracket]),
    ];
    vec![(Label::Select, 3, select), (Label::MemberCall, 2, call), (Label::Index, 1, index)]
}

fn primary() -> Vec<(Label, Vec<Draft>)> {
    let name = || Draft::Tokens(&[Ident], Slot::Name);
    let bracketed = |open, first, rule, close: &'static [Kind]| {
        vec![
            Draft::Tokens(open, Slot::Operator),
            Draft::Optional(first, vec![Draft::Rule(rule, 0, Slot::Arguments)]),
            trailing_comma(),
            token(close),
        ]
    };
    let more_names = vec![token(&[Dot]), name()];
    let mut message = vec![
        leading_dot(),
        name(),
        Draft::Loop { at_least_once: false, first: Some(Dot), parts: more_names },
    ];
    let first_of_fields = &[Question, Ident, EscapedIdent];
    message.extend(bracketed(&[LeftBrace], first_of_fields, Rule::FieldInitializerList, &[RightBrace]));
    vec![
        (Label::Ident, vec![leading_dot(), name()]),
        (
            Label::GlobalCall,
            vec![
                leading_dot(),
                name(),
                Draft::Tokens(&[LeftParenthesis], Slot::Operator),
                arguments(),
                token(&[RightParenthesis]),
            ],
        ),
        (
            Label::Nested,
            vec![
                token(&[LeftParenthesis]),
                Draft::Rule(Rule::Expr, 0, Slot::First),
                token(&[RightParenthesis]),
            ],
        ),
        (
            Label::CreateList,
            bracketed(&[LeftBracket], FIRST_OF_OPTIONAL_EXPR, Rule::ListInit, &[RightBracket]),
        ),
        (
            Label::CreateMap,
            bracketed(&[LeftBrace], FIRST_OF_OPTIONAL_EXPR, Rule::MapInitializerList, &[RightBrace]),
        ),
        (Label::CreateMessage, message),
        (Label::Other, vec![Draft::Rule(Rule::Literal, 0, Slot::First)]),
    ]
}

/// All rules, in the order of their numbers.
pub(super) const ALL: [Rule; RULES] = [
    Rule::Start,
    Rule::Expr,
    Rule::ConditionalOr,
    Rule::ConditionalAnd,
    Rule::Relation,
    Rule::Calc,
    Rule::Unary,
    Rule::Member,
    Rule::Primary,
    Rule::ExprList,
    Rule::ListInit,
    Rule::FieldInitializerList,
    Rule::OptField,
    Rule::MapInitializerList,
    Rule::EscapeIdent,
    Rule::OptExpr,
    Rule::Literal,
];
