//! Checks the syntax of label selectors.
//!
//! Source: apimachinery pkg/labels/selector.go, `Lexer` and `Parser`.

/// A token of a label selector. `in` and `notin` are operators where an operator is expected, and names elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Name(&'a str),
    Sign(&'a str),
    End,
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Name(text) | Self::Sign(text) => text,
            Self::End => "",
        }
    }

    fn is(self, sign: &str) -> bool {
        self == Token::Sign(sign)
    }
}

struct Parser<'a> {
    rest: &'a str,
}

const SIGNS: &str = "=!(),><";

impl<'a> Parser<'a> {
    /// Returns the next token and the text after it.
    fn look(&self) -> (Token<'a>, &'a str) {
        let rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let long = ["==", "!="].into_iter().find(|sign| rest.starts_with(sign)).map(str::len);
        let length = match rest.chars().next() {
            None => return (Token::End, rest),
            Some(first) if SIGNS.contains(first) => long.unwrap_or(1),
            Some(_) => {
                let ends = |c: char| SIGNS.contains(c) || [' ', '\t', '\r', '\n'].contains(&c);
                let (name, behind) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
                return (Token::Name(name), behind);
            }
        };
        let (sign, behind) = rest.split_at(length);
        (Token::Sign(sign), behind)
    }

    fn next(&mut self) -> Token<'a> {
        let (token, behind) = self.look();
        self.rest = behind;
        token
    }

    fn peek(&self) -> Token<'a> {
        self.look().0
    }

    fn requirement(&mut self) -> Result<(), String> {
        let absent = self.peek().is("!");
        if absent {
            self.next();
        }
        match self.next() {
            Token::Name(_) => {}
            other @ (Token::Sign(_) | Token::End) => {
                return Err(format!("found '{}', expected: identifier", other.text()));
            }
        }
        if absent || self.peek() == Token::End || self.peek().is(",") {
            return Ok(());
        }
        match self.next() {
            Token::Name("in" | "notin") => self.values(),
            Token::Sign("=" | "==" | "!=" | "<" | ">") => match self.peek() {
                Token::End | Token::Sign(",") => Ok(()),
                Token::Name(_) => {
                    self.next();
                    Ok(())
                }
                other @ Token::Sign(_) => Err(format!("found '{}', expected: identifier", other.text())),
            },
            other @ (Token::Name(_) | Token::Sign(_) | Token::End) => {
                Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text()))
            }
        }
    }

    fn values(&mut self) -> Result<(), String> {
        let first = self.next();
        if !first.is("(") {
            return Err(format!("found '{}' expected: '('", first.text()));
        }
        let expected = |token: Token<'_>| matches!(token, Token::Name(_)) || token.is(",") || token.is(")");
        if !expected(self.peek()) {
            return Err(format!("found '{}', expected: ',', ')' or identifier", self.peek().text()));
        }
        loop {
            match self.next() {
                Token::Name(_) => {
                    let behind = self.next();
                    if behind.is(")") {
                        return Ok(());
                    }
                    if !behind.is(",") {
                        return Err(format!("found '{}', expected: ',' or ')'", behind.text()));
                    }
                    // The last value may be empty.
                    if self.peek().is(")") {
                        self.next();
                        return Ok(());
                    }
                }
                Token::Sign(")") => return Ok(()),
                Token::Sign(",") => {}
                other @ (Token::Sign(_) | Token::End) => {
                    return Err(format!("found '{}', expected: ',', or identifier", other.text()));
                }
            }
        }
    }
}

/// Checks the syntax of a label selector.
///
/// Rule: LST-13.
///
/// # Errors
/// Returns kube-apiserver's message for the first syntax error.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let mut parser = Parser { rest: text };
    loop {
        match parser.peek() {
            Token::End => return Ok(()),
            Token::Name(_) | Token::Sign("!") => {}
            Token::Sign(found) => {
                return Err(format!("found '{found}', expected: !, identifier, or 'end of string'"));
            }
        }
        parser.requirement().map_err(|error| format!("unable to parse requirement: {error}"))?;
        match parser.next() {
            Token::End => return Ok(()),
            Token::Sign(",") => {
                let behind = parser.peek();
                if !matches!(behind, Token::Name(_)) && !behind.is("!") {
                    return Err(format!("found '{}', expected: identifier after ','", behind.text()));
                }
            }
            Token::Name(found) | Token::Sign(found) => {
                return Err(format!("found '{found}', expected: ',' or 'end of string'"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_selectors_have_upstream_errors() {
        for (text, expected) in [
            ("", ""),
            ("a", ""),
            ("in", ""),
            ("a=,b", ""),
            ("a in ()", ""),
            ("a in (,)", ""),
            ("a in (b,)", ""),
            ("!a, b notin (c, d),e!=f,g>1", ""),
            (",", "found ',', expected: !, identifier, or 'end of string'"),
            ("a,", "found '', expected: identifier after ','"),
            ("a,,b", "found ',', expected: identifier after ','"),
            ("(a)", "found '(', expected: !, identifier, or 'end of string'"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            ("a in", "unable to parse requirement: found '' expected: '('"),
            ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ] {
            assert_eq!(check(text).err().unwrap_or_default(), expected, "{text}");
        }
    }
}
