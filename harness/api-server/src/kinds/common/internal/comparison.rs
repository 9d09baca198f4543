//! Computes the same line diffs as Python's difflib and its Go port.
//!
//! Source: github.com/pmezard/go-difflib difflib/difflib.go, `SequenceMatcher` and `WriteUnifiedDiff`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

/// The number of context lines around a difference.
const CONTEXT_LINES: usize = 3;

/// The minimum length of the new text, in lines, for which the diff ignores frequent lines.
///
/// A line is frequent if it makes up more than one percent of the text.
const AUTO_JUNK_MIN_LINES: usize = 200;

/// The maximum number of pairs of equal lines to compare. Comparing this many pairs takes a few tenths of a second.
const MAX_PAIRS: usize = 2_000_000;

/// A range of old lines that a range of new lines replaces.
#[derive(Clone, Debug)]
struct Step {
    is_equal: bool,
    old: Range<usize>,
    new: Range<usize>,
}

/// Returns the unified diff; `None` if the texts are too long to compare.
pub(crate) fn unified(old: &str, new: &str) -> Option<String> {
    let [old, new] = [old, new].map(|text| text.split('\n').collect::<Vec<&str>>());
    let mut text = String::new();
    for group in groups(Matcher::new(&old, &new).steps()?) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let of_old = range(first.old.start..last.old.end);
        let of_new = range(first.new.start..last.new.end);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "@@ -{of_old} +{of_new} @@");
        let mut tell = |sign: char, lines: Option<&[&str]>| {
            for line in lines.unwrap_or_default() {
                let _ = writeln!(text, "{sign}{line}");
            }
        };
        for Step { is_equal, old: of_old, new: of_new } in group {
            if is_equal {
                tell(' ', old.get(of_old));
            } else {
                tell('-', old.get(of_old));
                tell('+', new.get(of_new));
            }
        }
    }
    Some(text)
}

/// Formats a range of lines for the header of a hunk.
///
/// Source: `formatRangeUnified`.
fn range(lines: Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        length => format!("{},{length}", lines.start + 1),
    }
}

/// Groups nearby steps and adds context lines.
///
/// Source: `GetGroupedOpCodes`.
fn groups(mut steps: Vec<Step>) -> Vec<Vec<Step>> {
    if let Some(Step { is_equal: true, old, new }) = steps.first_mut() {
        old.start = old.start.max(old.end.saturating_sub(CONTEXT_LINES));
        new.start = new.start.max(new.end.saturating_sub(CONTEXT_LINES));
    }
    if let Some(Step { is_equal: true, old, new }) = steps.last_mut() {
        old.end = old.end.min(old.start + CONTEXT_LINES);
        new.end = new.end.min(new.start + CONTEXT_LINES);
    }
    let (mut groups, mut group) = (Vec::new(), Vec::new());
    for mut step in steps {
        if step.is_equal && step.old.len() > 2 * CONTEXT_LINES {
            let (old, new) = (step.old.clone(), step.new.clone());
            group.push(Step {
                is_equal: true,
                old: old.start..old.start + CONTEXT_LINES,
                new: new.start..new.start + CONTEXT_LINES,
            });
            groups.push(std::mem::take(&mut group));
            step.old.start = old.end - CONTEXT_LINES;
            step.new.start = new.end - CONTEXT_LINES;
        }
        group.push(step);
    }
    if !matches!(group.as_slice(), [] | [Step { is_equal: true, .. }]) {
        groups.push(group);
    }
    groups
}

struct Matcher<'a> {
    old: &'a [&'a str],
    new: &'a [&'a str],
    /// The positions of each line in the new text, except for lines that occur too often.
    places: HashMap<&'a str, Vec<usize>>,
    /// The number of pairs that may still be compared.
    pairs: usize,
}

/// A block of equal lines: its start in the old and the new text, and its length.
#[derive(Clone, Copy, Debug)]
struct Block {
    old: usize,
    new: usize,
    length: usize,
}

impl<'a> Matcher<'a> {
    fn new(old: &'a [&'a str], new: &'a [&'a str]) -> Self {
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (place, line) in new.iter().enumerate() {
            places.entry(line).or_default().push(place);
        }
        if new.len() >= AUTO_JUNK_MIN_LINES {
            places.retain(|_, places| places.len() <= new.len() / 100 + 1);
        }
        Self { old, new, places, pairs: MAX_PAIRS }
    }

    /// Returns the steps from the old text to the new text.
    ///
    /// Source: `GetOpCodes`.
    fn steps(mut self) -> Option<Vec<Step>> {
        let mut steps = Vec::new();
        let (mut old, mut new) = (0, 0);
        let end = Block { old: self.old.len(), new: self.new.len(), length: 0 };
        for block in self.blocks()?.into_iter().chain([end]) {
            if old < block.old || new < block.new {
                steps.push(Step { is_equal: false, old: old..block.old, new: new..block.new });
            }
            (old, new) = (block.old + block.length, block.new + block.length);
            if block.length > 0 {
                steps.push(Step { is_equal: true, old: block.old..old, new: block.new..new });
            }
        }
        Some(steps)
    }

    /// Returns the blocks of equal lines in order.
    ///
    /// Source: `GetMatchingBlocks`.
    fn blocks(&mut self) -> Option<Vec<Block>> {
        let mut found: Vec<Block> = Vec::new();
        // A loop instead of recursion, which could be as deep as the text is long.
        let mut open = vec![(0..self.old.len(), 0..self.new.len())];
        while let Some((old, new)) = open.pop() {
            let block = self.longest(old.clone(), new.clone())?;
            if block.length == 0 {
                continue;
            }
            let (before_old, before_new) = (old.start..block.old, new.start..block.new);
            let (after_old, after_new) =
                (block.old + block.length..old.end, block.new + block.length..new.end);
            found.push(block);
            if !before_old.is_empty() && !before_new.is_empty() {
                open.push((before_old, before_new));
            }
            if !after_old.is_empty() && !after_new.is_empty() {
                open.push((after_old, after_new));
            }
        }
        found.sort_unstable_by_key(|block| block.old);
        let mut blocks: Vec<Block> = Vec::with_capacity(found.len());
        for block in found {
            match blocks.last_mut() {
                Some(last) if last.old + last.length == block.old && last.new + last.length == block.new => {
                    last.length += block.length;
                }
                _ => blocks.push(block),
            }
        }
        Some(blocks)
    }

    /// Returns the longest block of equal lines.
    ///
    /// If several blocks have the same length, returns the first block in the old text, then in the new text.
    ///
    /// Source: `findLongestMatch`.
    fn longest(&mut self, old: Range<usize>, new: Range<usize>) -> Option<Block> {
        let mut best = Block { old: old.start, new: new.start, length: 0 };
        // The length of the block that ends before the line, by position in the new text.
        let mut lengths: HashMap<usize, usize> = HashMap::new();
        for place in old.clone() {
            let mut longer = HashMap::new();
            let line = self.old.get(place).copied().unwrap_or_default();
            let places = self.places.get(line).map_or(&[][..], Vec::as_slice);
            let first = places.partition_point(|place| *place < new.start);
            for &at in places.iter().skip(first).take_while(|place| **place < new.end) {
                self.pairs = self.pairs.checked_sub(1)?;
                let before = at.checked_sub(1).and_then(|before| lengths.get(&before)).copied();
                let length = before.unwrap_or_default() + 1;
                longer.insert(at, length);
                if length > best.length {
                    best = Block { old: place + 1 - length, new: at + 1 - length, length };
                }
            }
            lengths = longer;
        }
        // Adjacent equal lines extend the block even if they occur too often.
        let are_equal = |old: usize, new: usize| self.old.get(old) == self.new.get(new);
        while best.old > old.start && best.new > new.start && are_equal(best.old - 1, best.new - 1) {
            best = Block { old: best.old - 1, new: best.new - 1, length: best.length + 1 };
        }
        while best.old + best.length < old.end
            && best.new + best.length < new.end
            && are_equal(best.old + best.length, best.new + best.length)
        {
            best.length += 1;
        }
        Some(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares diffs of pairs of random texts with the results of Go's port in `recorded.jsonl`.
    #[test]
    fn diffs_match_upstream() {
        for line in include_str!("recorded.jsonl").lines() {
            let [old, new, expected]: [String; 3] = serde_json::from_str(line).unwrap();
            assert_eq!(unified(&old, &new).unwrap(), expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn diff_of_too_many_equal_lines_is_skipped() {
        let many = |last: &str| {
            let mut lines: Vec<String> = (0..20_000).map(|line| (line % 101).to_string()).collect();
            lines.push(last.to_owned());
            lines.join("\n")
        };
        assert_eq!(unified(&many("a"), &many("b")), None);
    }
}
