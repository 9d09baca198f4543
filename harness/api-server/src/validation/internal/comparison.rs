//! Which lines of two texts differ, as Python's difflib and its port to Go tell it.
//!
//! Source: github.com/pmezard/go-difflib difflib/difflib.go, `SequenceMatcher` and `WriteUnifiedDiff`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

/// How many equal lines stand around what differs.
const CONTEXT: usize = 3;
/// From so many lines on, those that are more than a hundredth of all are not looked for.
const MANY_LINES: usize = 200;
/// How many pairs of equal lines are looked at, at most: some tenths of a second.
const MOST_PAIRS: usize = 2_000_000;

/// Some lines of the one text that become some lines of the other.
#[derive(Clone, Debug)]
struct Step {
    is_equal: bool,
    old: Range<usize>,
    new: Range<usize>,
}

/// What differs, with the lines around it; none if the texts are too long to be compared.
pub(super) fn unified(old: &str, new: &str) -> Option<String> {
    let [old, new] = [old, new].map(|text| text.split('\n').collect::<Vec<&str>>());
    let mut text = String::new();
    for group in groups(Matcher::new(&old, &new).steps()?) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let of_old = range(first.old.start..last.old.end);
        let of_new = range(first.new.start..last.new.end);
        // Writing to a text cannot fail.
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

/// Source: `formatRangeUnified`.
fn range(lines: Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        length => format!("{},{length}", lines.start + 1),
    }
}

/// Steps that stand near one another, with a few equal lines around.
///
/// Source: `GetGroupedOpCodes`.
fn groups(mut steps: Vec<Step>) -> Vec<Vec<Step>> {
    if let Some(Step { is_equal: true, old, new }) = steps.first_mut() {
        old.start = old.start.max(old.end.saturating_sub(CONTEXT));
        new.start = new.start.max(new.end.saturating_sub(CONTEXT));
    }
    if let Some(Step { is_equal: true, old, new }) = steps.last_mut() {
        old.end = old.end.min(old.start + CONTEXT);
        new.end = new.end.min(new.start + CONTEXT);
    }
    let (mut groups, mut group) = (Vec::new(), Vec::new());
    for mut step in steps {
        if step.is_equal && step.old.len() > 2 * CONTEXT {
            let (old, new) = (step.old.clone(), step.new.clone());
            group.push(Step {
                is_equal: true,
                old: old.start..old.start + CONTEXT,
                new: new.start..new.start + CONTEXT,
            });
            groups.push(std::mem::take(&mut group));
            step.old.start = old.end - CONTEXT;
            step.new.start = new.end - CONTEXT;
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
    /// Where each line stands in the new text, unless it stands there too often.
    places: HashMap<&'a str, Vec<usize>>,
    /// How many more pairs may be looked at.
    pairs: usize,
}

/// Equal lines: where they begin in either text, and how many they are.
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
        if new.len() >= MANY_LINES {
            places.retain(|_, places| places.len() <= new.len() / 100 + 1);
        }
        Self { old, new, places, pairs: MOST_PAIRS }
    }

    /// How the old text becomes the new one.
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

    /// The blocks of equal lines, in order.
    ///
    /// Source: `GetMatchingBlocks`.
    fn blocks(&mut self) -> Option<Vec<Block>> {
        let mut found: Vec<Block> = Vec::new();
        // Instead of a recursion, which the text could make as deep as it is long.
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

    /// The longest block of equal lines; of those that are as long, the first one in the old text, and then in the new one.
    ///
    /// Source: `findLongestMatch`.
    fn longest(&mut self, old: Range<usize>, new: Range<usize>) -> Option<Block> {
        let mut best = Block { old: old.start, new: new.start, length: 0 };
        // How long a block is that ends before the line, by its place in the new text.
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
        // Lines that stand too often may be equal all the same.
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

    /// `recorded.jsonl` has pairs of random texts, of which every fourth has many lines, and what Go's port says of them.
    #[test]
    fn texts_are_compared_as_upstream_compares_them() {
        for line in include_str!("recorded.jsonl").lines() {
            let [old, new, expected]: [String; 3] = serde_json::from_str(line).unwrap();
            assert_eq!(unified(&old, &new).unwrap(), expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn very_many_equal_lines_are_not_compared() {
        let many = |last: &str| {
            let mut lines: Vec<String> = (0..20_000).map(|line| (line % 101).to_string()).collect();
            lines.push(last.to_owned());
            lines.join("\n")
        };
        assert_eq!(unified(&many("a"), &many("b")), None);
    }
}
