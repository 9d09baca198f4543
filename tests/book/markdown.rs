//! Parses the parts of Markdown that the tests need: code blocks, headings, anchors, and links.

use std::collections::BTreeSet;

use regex::Regex;

/// A fenced code block.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    /// The info string, such as `console`.
    pub(crate) language: &'a str,
    pub(crate) text: &'a str,
    /// The number of the first line of `text` in the page, starting with 1.
    pub(crate) line: usize,
}

impl Block<'_> {
    /// Returns the file name in a first line such as `# fakes.yaml`.
    pub(crate) fn file_name(&self) -> Option<&str> {
        let name = self.text.lines().next()?.strip_prefix("# ")?;
        let is_name = name.split('/').all(|part| {
            !part.is_empty()
                && part.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
        });
        (is_name && name.contains('.')).then_some(name)
    }
}

/// Returns the code blocks of a page that begin in the first column.
pub(crate) fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, usize, usize)> = None;
    let mut offset = 0;
    for (index, line) in page.split_inclusive('\n').enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            match open.take() {
                Some((language, start, line)) => {
                    blocks.push(Block { language, text: &page[start..offset], line });
                }
                None => open = Some((language.trim(), offset + line.len(), index + 2)),
            }
        }
        offset += line.len();
    }
    assert!(open.is_none(), "a code block does not end");
    blocks
}

/// Returns the page without its code blocks.
pub(crate) fn prose(page: &str) -> String {
    let mut is_code = false;
    let mut prose = String::new();
    for line in page.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        if !is_code && !is_fence {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

/// Returns the targets of all links.
pub(crate) fn links(page: &str) -> Vec<String> {
    let link = Regex::new(r"\]\(([^)\s]+)\)").expect("a valid expression");
    link.captures_iter(&prose(page)).map(|found| found[1].to_owned()).collect()
}

/// Returns the anchors of a page: those that mdBook and GitHub generate for its headings, and explicit ones.
pub(crate) fn anchors(page: &str) -> BTreeSet<String> {
    let explicit = Regex::new(r#"<a id="([^"]+)">"#).expect("a valid expression");
    let prose = prose(page);
    let headings = prose.lines().filter_map(|line| {
        let text = line.trim_start_matches('#');
        (text.len() < line.len()).then(|| anchor(text.trim()))
    });
    headings.chain(explicit.captures_iter(&prose).map(|found| found[1].to_owned())).collect()
}

fn anchor(heading: &str) -> String {
    let lower = heading.to_lowercase();
    let kept = lower.chars().filter(|letter| letter.is_alphanumeric() || "-_ ".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

#[test]
fn blocks_have_languages_lines_and_file_names() {
    let page = "# T\n\n```yaml\n# deploy/a.yaml\nx: 1\n```\ntext\n```console\n$ admit\n```\n";
    let blocks = blocks(page);
    let found: Vec<_> = blocks.iter().map(|block| (block.language, block.line, block.file_name())).collect();
    assert_eq!(found, [("yaml", 4, Some("deploy/a.yaml")), ("console", 9, None)]);
}

#[test]
fn anchors_are_those_of_headings_and_of_explicit_ones() {
    let found = anchors("# How a `request` is made\n\n<a id=\"v01\"></a>\n\n```\n# code\n```\n");
    assert_eq!(found, ["how-a-request-is-made", "v01"].map(str::to_owned).into());
}
