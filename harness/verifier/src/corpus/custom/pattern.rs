//! Texts that a regular expression matches.

use kubernetes_cel::regexp::Regexp;
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

/// Why there is no text.
struct Obstacle;

/// How many characters and nodes of an expression a text may take.
const BUDGET: usize = 20_000;
/// How much longer than it must be a text is tried to be made.
const LONGER: [u32; 10] = [0, 1, 2, 3, 5, 8, 16, 40, 100, 250];
/// How many alternatives are tried.
const CHOICES: usize = 6;
/// The characters that are taken if a class has them, in this order.
const USUAL: &str = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-._/:@ +=,";

/// Whether `text` matches the expression, which is none if it cannot be read.
pub(super) fn is_match(expression: &str, text: &str) -> bool {
    Regexp::new(expression).is_ok_and(|expression| expression.is_match(text))
}

/// A text of `least` to `most` characters that `expression` matches; another one each `turn` if there are several. None if
/// none was found.
pub(super) fn text(expression: &str, turn: usize, least: usize, most: usize) -> Option<String> {
    // What is allowed is what Go's expressions match; this one gives suggestions.
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
            // An expression that is not anchored allows anything behind it.
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
    /// Which characters and alternatives are taken.
    choice: usize,
    /// How often something is repeated beyond what it must be.
    longer: u32,
}

impl Writer {
    fn write(&mut self, part: &Hir) -> Result<(), Obstacle> {
        self.spend(1)?;
        match part.kind() {
            HirKind::Empty | HirKind::Look(_) => Ok(()),
            HirKind::Literal(literal) => {
                let literal = std::str::from_utf8(&literal.0).map_err(|_not_text| Obstacle)?;
                self.spend(literal.len())?;
                self.text.push_str(literal);
                Ok(())
            }
            HirKind::Class(class) => {
                self.text.push(character(class, self.choice).ok_or(Obstacle)?);
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
                let index = self.choice.checked_rem(parts.len()).ok_or(Obstacle)?;
                self.write(parts.get(index).ok_or(Obstacle)?)
            }
        }
    }

    fn spend(&mut self, amount: usize) -> Result<(), Obstacle> {
        self.budget = self.budget.checked_sub(amount).ok_or(Obstacle)?;
        Ok(())
    }
}

/// Number `choice` of the usual characters of a class, or its first one.
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
