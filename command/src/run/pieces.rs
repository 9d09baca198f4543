//! Parses long feature files in pieces.
//!
//! For each line, the parser scans all lines that it has read before, so parsing takes time quadratic in the number of
//! lines.

use std::ops::Range;

use gherkin::{Feature, GherkinEnv, LineCol, Rule, Scenario, Span, Step, Table};

/// The minimum number of lines in a file that is parsed in pieces.
const LONG: usize = 2_000;
/// The minimum number of lines in a piece.
const PIECE: usize = 500;

/// The English keywords that begin a scenario.
const SCENARIO: [&str; 4] = ["Scenario:", "Scenario Outline:", "Scenario Template:", "Example:"];

/// Parses a long file into a feature.
///
/// Returns `None` if the file must be parsed as a whole because it is short, in another language, or invalid.
pub(super) fn parse(text: &str) -> Option<Feature> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    if lines.len() < LONG { None } else { parse_in_pieces(&lines, PIECE) }
}

fn parse_in_pieces(lines: &[&str], least: usize) -> Option<Feature> {
    let (head, pieces) = pieces(lines, least)?;
    let head_text = lines.get(..head)?.concat();
    let mut feature = Feature::parse(&head_text, GherkinEnv::default()).ok()?;
    for Piece { rule, lines: piece } in pieces {
        let above = head + rule.as_ref().map_or(0, Range::len);
        // Repeating these lines in front of every piece must cost less than parsing the piece.
        if above > PIECE {
            return None;
        }
        let further = piece.start - above;
        // Each piece is preceded by the lines of its feature and rule, so that it parses as a feature with the same
        // backgrounds.
        let rule_text = rule.clone().map_or(Some(String::new()), |rule| Some(lines.get(rule)?.concat()))?;
        let text = format!("{head_text}{rule_text}{}", lines.get(piece)?.concat());
        let parsed = Feature::parse(text, GherkinEnv::default()).ok()?;
        let mut rules = parsed.rules.into_iter();
        if rule.is_some() {
            let scenarios = rules.next()?.scenarios.into_iter();
            let begun = &mut feature.rules.last_mut()?.scenarios;
            begun.extend(scenarios.map(|scenario| further_down(scenario, further)));
        }
        let scenarios = parsed.scenarios.into_iter();
        feature.scenarios.extend(scenarios.map(|scenario| further_down(scenario, further)));
        feature.rules.extend(rules.map(|rule| rule_further_down(rule, further)));
    }
    Some(feature)
}

/// A range of lines that begins with a scenario or a rule.
#[derive(Debug, PartialEq)]
struct Piece {
    /// The lines of the rule that continues from the previous piece, up to its first scenario.
    rule: Option<Range<usize>>,
    lines: Range<usize>,
}

/// Returns the number of lines of the feature's head, and the pieces after the head.
///
/// All pieces but the last have at least `least` lines.
fn pieces(lines: &[&str], least: usize) -> Option<(usize, Vec<Piece>)> {
    let starts = starts(lines)?;
    let head = starts.first()?.line;
    let mut pieces: Vec<Piece> = vec![Piece { rule: None, lines: head..lines.len() }];
    // The first line of the rule, and the line of its first scenario.
    let mut rule: Option<(usize, Option<usize>)> = None;
    for Start { line, of_rule } in starts {
        if of_rule {
            rule = Some((line, None));
        } else if let Some((_, first @ None)) = &mut rule {
            *first = Some(line);
        }
        let open = &mut pieces.last_mut()?.lines;
        if line - open.start >= least {
            open.end = line;
            let goes_on = rule.filter(|_| !of_rule).and_then(|(begin, first)| Some(begin..first?));
            pieces.push(Piece { rule: goes_on, lines: line..lines.len() });
        }
    }
    Some((head, pieces))
}

/// The first line of a scenario or rule, including its tags and comments.
struct Start {
    line: usize,
    of_rule: bool,
}

/// Returns the start of each scenario and rule, or `None` if the file is in another language.
fn starts(lines: &[&str]) -> Option<Vec<Start>> {
    let mut starts = Vec::new();
    let mut end_of_text = None;
    // The first line of the tags and comments that belong to the next scenario or rule.
    let mut before = 0;
    for (number, line) in lines.iter().enumerate() {
        let line = line.trim();
        if let Some(end) = end_of_text {
            if line.contains(end) {
                end_of_text = None;
            }
            before = number + 1;
            continue;
        }
        if line.starts_with('#') && line.contains("language") {
            return None;
        }
        let of_rule = line.starts_with("Rule:");
        if of_rule || SCENARIO.iter().any(|word| line.starts_with(word)) {
            starts.push(Start { line: before, of_rule });
        }
        if !(line.is_empty() || line.starts_with(['#', '@'])) {
            before = number + 1;
        }
        let fence = ["\"\"\"", "```"].into_iter().find(|fence| line.starts_with(fence));
        end_of_text = fence.filter(|fence| line.matches(fence).count() < 2);
    }
    Some(starts)
}

/// Returns the rule with its position moved down by `lines` lines, as [`further_down`] does for a scenario.
fn rule_further_down(mut rule: Rule, lines: usize) -> Rule {
    place(&mut rule.position, &mut rule.span, lines);
    if let Some(background) = &mut rule.background {
        place(&mut background.position, &mut background.span, lines);
        background.steps.iter_mut().for_each(|step| step_further_down(step, lines));
    }
    rule.scenarios = rule.scenarios.into_iter().map(|scenario| further_down(scenario, lines)).collect();
    rule
}

/// Returns the scenario with its position moved down by `lines` lines.
///
/// Byte spans become empty, because they are not used.
fn further_down(mut scenario: Scenario, lines: usize) -> Scenario {
    place(&mut scenario.position, &mut scenario.span, lines);
    scenario.steps.iter_mut().for_each(|step| step_further_down(step, lines));
    for examples in &mut scenario.examples {
        place(&mut examples.position, &mut examples.span, lines);
        table_further_down(examples.table.as_mut(), lines);
    }
    scenario
}

fn step_further_down(step: &mut Step, lines: usize) {
    place(&mut step.position, &mut step.span, lines);
    table_further_down(step.table.as_mut(), lines);
}

fn table_further_down(table: Option<&mut Table>, lines: usize) {
    if let Some(table) = table {
        place(&mut table.position, &mut table.span, lines);
    }
}

fn place(position: &mut LineCol, span: &mut Span, lines: usize) {
    position.line += lines;
    *span = Span::default();
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# A comment
@all
Feature: Pieces
  It has a description.

  Background:
    Given a namespace

  @first
  # of the first
  Scenario: First
    Given a text
      """
      Scenario: this is none
      Rule: nor is this one
      """
    And a table
      | a | b |
      | 1 | 2 |

  # before the second
  @second @more
  Scenario Outline: Second <a>
    It is described.

    When <a> is created
    Then it is there

    @few
    Examples: A few
      | a |
      | x |
      | y |

    Examples:
      | a |
      | z |
  Example: Third
    When something happens

  Scenario: Without steps

  Scenario: Last
    Then all is over

  # of the rule
  @rule
  Rule: A rule
    It is described, too.

    Background:
      Given a rule's namespace
        | c |
        | 3 |

    @third
    Scenario: Under the rule
      Given a text
        """
        Rule: this is none
        """

    Scenario: Also under the rule
      Then it is there

  Rule: Another rule

    Example: Under another rule
      When something happens
"#;

    #[test]
    fn a_file_in_pieces_is_the_same_as_in_one() {
        let lines: Vec<&str> = TEXT.split_inclusive('\n').collect();
        let without_spans = |mut feature: Feature| {
            feature.span = Span::default();
            feature.background.as_mut().unwrap().span = Span::default();
            feature.scenarios = feature.scenarios.into_iter().map(|it| further_down(it, 0)).collect();
            feature.rules = feature.rules.into_iter().map(|it| rule_further_down(it, 0)).collect();
            feature
        };
        let whole = without_spans(Feature::parse(TEXT, GherkinEnv::default()).unwrap());
        assert_eq!(whole.scenarios.len(), 5);
        assert_eq!(whole.rules.iter().map(|rule| rule.scenarios.len()).collect::<Vec<_>>(), [2, 1]);
        for least in [1, 5, 10, 20, 1000] {
            let pieces = parse_in_pieces(&lines, least).map(without_spans);
            assert_eq!(pieces.as_ref(), Some(&whole), "{least}");
        }
    }

    #[test]
    fn no_piece_is_much_longer_than_asked_for() {
        for (first, heads) in [("Feature: Long\n", 1), ("Feature: Long\n  Rule: One\n", 2)] {
            let text = format!("{first}{}", "  Scenario: One\n    Given a step\n\n".repeat(100_000));
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let (head, pieces) = pieces(&lines, PIECE).unwrap();
            assert_eq!((head, pieces.first().map(|piece| piece.lines.start)), (1, Some(1)));
            assert!(pieces.iter().all(|piece| piece.lines.len() <= PIECE + 3));
            assert_eq!(pieces.iter().map(|piece| piece.lines.len()).sum::<usize>(), lines.len() - head);
            let feature = parse_in_pieces(&lines[..3000 + heads], PIECE).unwrap();
            let rules = feature.rules.iter().flat_map(|rule| &rule.scenarios);
            let places: Vec<usize> =
                feature.scenarios.iter().chain(rules).map(|scenario| scenario.position.line).collect();
            assert_eq!(places, (0..1000).map(|number| 3 * number + heads + 1).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_cannot_be_taken_apart_is_read_as_a_whole() {
        let scenario = "Scenario: One\n  Given a step\n";
        for text in [
            format!("# language: de\nFeature: A\n{scenario}"),
            format!("Feature: A\n{scenario}  nothing that is known\n"),
            "Feature: A\n".to_owned(),
        ] {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            assert_eq!(parse_in_pieces(&lines, 1), None, "{text}");
        }
        assert_eq!(parse(&format!("Feature: A\n{scenario}")), None);
    }
}
