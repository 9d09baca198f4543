//! Reads tokens on demand and collects errors.
//!
//! Source: antlr4-go `lexer.go`, `common_token_stream.go` and `error_strategy.go`; cel-go parser/parser.go,
//! `SyntaxError`.

use super::visit::NOWHERE;
use crate::parser::lexer::{self, Kind, Lexed, NoToken, Token};
use crate::source::{Issues, Source, narrow};

/// The number of syntax errors after which the parser gives up.
const MAX_SYNTAX_ERRORS: usize = 100;

pub(super) struct Tokens<'s, 't> {
    source: &'s Source<'t>,
    issues: &'s mut Issues,
    /// The tokens that are neither white space nor comments.
    read: Vec<Token>,
    /// The start and end of each token, including white space and comments.
    pieces: Vec<(usize, usize)>,
    /// The byte offset up to which the text has been read.
    at: usize,
    reported: usize,
}

impl<'s, 't> Tokens<'s, 't> {
    pub(super) fn new(source: &'s Source<'t>, issues: &'s mut Issues) -> Self {
        Self { source, issues, read: Vec::new(), pieces: Vec::new(), at: 0, reported: 0 }
    }

    /// Returns whether the maximum number of syntax errors is reached.
    pub(super) fn is_full(&self) -> bool {
        self.reported > MAX_SYNTAX_ERRORS
    }

    /// Returns the token at `index`, and reads more of the text if necessary.
    pub(super) fn get(&mut self, index: usize) -> Token {
        while self.read.len() <= index && self.read.last().is_none_or(|last| last.kind != Kind::End) {
            let next = self.next();
            self.read.push(next);
        }
        let end = narrow(self.source.text.len());
        let last = Token { kind: Kind::End, start: end, end, offset: 0 };
        self.read.get(index).or(self.read.last()).copied().unwrap_or(last)
    }

    pub(super) fn kind(&mut self, index: usize) -> Kind {
        self.get(index).kind
    }

    fn next(&mut self) -> Token {
        let text = self.source.text;
        while self.at < text.len() {
            let start = self.at;
            match lexer::next(text, start) {
                Ok(Lexed::Hidden(end)) => {
                    self.pieces.push((start, end));
                    self.at = end;
                }
                Ok(Lexed::Token(kind, end)) => {
                    self.pieces.push((start, end));
                    self.at = end;
                    let offset = self.source.code_point(start);
                    return Token { kind, start: narrow(start), end: narrow(end), offset };
                }
                Err(NoToken { failed_at }) => {
                    let rest = text.get(failed_at..).unwrap_or_default();
                    let end = failed_at + rest.chars().next().map_or(0, char::len_utf8);
                    self.at = end;
                    let wrong = text.get(start..end).unwrap_or_default();
                    let position = Some(self.place(self.source.code_point(start)));
                    self.add(position, &format!("token recognition error at: '{wrong}'"));
                }
            }
        }
        let end = narrow(text.len());
        Token { kind: Kind::End, start: end, end, offset: self.source.code_point(text.len()) }
    }

    /// Returns the line and the column of a code point, both starting with 1; the column is 0 in an empty expression
    /// and for an unknown position.
    fn place(&self, offset: u32) -> (u32, u32) {
        if self.source.text.is_empty() || offset == NOWHERE {
            return (1, 0);
        }
        self.source.position(offset)
    }

    /// Reports a syntax error at a token.
    pub(super) fn report_syntax(&mut self, index: usize, message: &str) {
        let offset = self.get(index).offset;
        let position = Some(self.place(offset));
        self.add(position, message);
    }

    fn add(&mut self, position: Option<(u32, u32)>, message: &str) {
        if self.reported > MAX_SYNTAX_ERRORS {
            return;
        }
        self.reported += 1;
        if self.reported > MAX_SYNTAX_ERRORS {
            self.issues
                .add_at(position, format!("Syntax error: More than {MAX_SYNTAX_ERRORS} syntax errors"));
        } else {
            self.issues.add_at(position, format!("Syntax error: {message}"));
        }
    }

    /// Reports an error that the grammar does not cover.
    pub(super) fn report_at(&mut self, offset: u32, message: String) {
        let position = Some(self.place(offset));
        self.issues.add_at(position, message);
    }

    /// Reports an error about the whole text, without a position.
    pub(super) fn report(&mut self, message: String) {
        self.issues.add_at(None, message);
    }

    /// Formats a token for error messages.
    pub(super) fn display(&mut self, index: usize) -> String {
        let token = self.get(index);
        if token.kind == Kind::End {
            return "'<EOF>'".to_owned();
        }
        let text = self.source.text.get(token.start as usize..token.end as usize).unwrap_or_default();
        format!("'{}'", escaped(text))
    }

    /// Returns the text from one token to another, without parts that are not tokens.
    pub(super) fn between(&mut self, first: usize, last: usize) -> String {
        let (first, last) = (self.get(first), self.get(last));
        if first.kind == Kind::End {
            return "<EOF>".to_owned();
        }
        let pieces = self
            .pieces
            .iter()
            .filter(|(start, end)| *start >= first.start as usize && *end <= last.end as usize);
        escaped(&pieces.filter_map(|(start, end)| self.source.text.get(*start..*end)).collect::<String>())
    }
}

fn escaped(text: &str) -> String {
    text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}
