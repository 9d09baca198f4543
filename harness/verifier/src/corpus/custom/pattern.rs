//! Generates strings that match a regular expression.

use kubernetes_cel::regexp::Regexp;
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

/// The error if no matching string was found.
struct NoText;

/// The maximum number of characters and expression nodes for a string.
const BUDGET: usize = 20_000;
/// The numbers of additional repetitions to try.
const LONGER: [u32; 10] = [0, 1, 2, 3, 5, 8, 16, 40, 100, 250];
/// The number of alternatives to try.
const CHOICES: usize = 6;
/// The characters to prefer from a character class, in order of preference.
const USUAL: &str = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-._/:@ +=,";

/// Returns whether `text` matches the expression, or `false` if the expression is invalid.
pub(super) fn is_match(expression: &str, text: &str) -> bool {
    Regexp::new(expression).is_ok_and(|expression| expression.is_match(text))
}

/// Returns a string of `least` to `most` characters that matches `expression`, or `None` if none was found.
pub(super) fn text(expression: &str, turn: usize, least: usize, most: usize) -> Option<String> {
    // The Go-compatible regular expression decides what matches; the parsed one only suggests strings.
    let regexp = Regexp::new(expression).ok()?;
    let parsed = regex_syntax::Parser::new().parse(expression).ok()?;
    let is_fitting = |text: &str| (least..=most).contains(&text.chars().count()) && regexp.is_match(text);
    for longer in LONGER {
        for choice in turn..turn + CHOICES {
            let mut writer = Writer { text: String::new(), budget: BUDGET, choice, longer };
            if writer.write(&parsed).is_err() {
                continue;
            }
            let short = least.saturating_sub(writer.text.chars().count());
            let padded = || format!("{}{}", writer.text, "x".repeat(short));
            if is_fitting(&writer.text) {
                return Some(writer.text);
            }
            // An unanchored expression allows any characters after the match.
            if short > 0 && is_fitting(&padded()) {
                return Some(padded());
            }
        }
    }
    None
}

struct Writer {
    text: String,
    budget: usize,
    /// Determines which characters and alternatives are chosen.
    choice: usize,
    /// The number of repetitions beyond the minimum.
    longer: u32,
}

impl Writer {
    fn write(&mut self, part: &Hir) -> Result<(), NoText> {
        self.spend(1)?;
        match part.kind() {
            HirKind::Empty | HirKind::Look(_) => Ok(()),
            HirKind::Literal(literal) => {
                let literal = std::str::from_utf8(&literal.0).map_err(|_not_text| NoText)?;
                self.spend(literal.len())?;
                self.text.push_str(literal);
                Ok(())
            }
            HirKind::Class(class) => {
                self.text.push(character(class, self.choice).ok_or(NoText)?);
                Ok(())
            }
            HirKind::Repetition(Repetition { min, max, sub, .. }) => {
                let count = min.saturating_add(self.longer);
                for _ in 0..max.map_or(count, |most| count.min(most)) {
                    self.write(sub)?;
                }
                Ok(())
            }
            HirKind::Capture(capture) => self.write(&capture.sub),
            HirKind::Concat(parts) => parts.iter().try_for_each(|part| self.write(part)),
            HirKind::Alternation(parts) => {
                let index = self.choice.checked_rem(parts.len()).ok_or(NoText)?;
                self.write(parts.get(index).ok_or(NoText)?)
            }
        }
    }

    fn spend(&mut self, amount: usize) -> Result<(), NoText> {
        self.budget = self.budget.checked_sub(amount).ok_or(NoText)?;
        Ok(())
    }
}

/// Returns the preferred character at index `choice` in a class.
///
/// If the class does not have preferred characters, returns its first character.
fn character(class: &Class, choice: usize) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => {
            class.iter().map(|range| (char::from(range.start()), char::from(range.end()))).collect()
        }
    };
    let is_in = |character: char| ranges.iter().any(|(from, to)| (*from..=*to).contains(&character));
    let usual: Vec<char> = USUAL.chars().filter(|usual| is_in(*usual)).collect();
    let index = choice.checked_rem(usual.len());
    index.and_then(|index| usual.get(index).copied()).or_else(|| ranges.first().map(|(from, _)| *from))
}
