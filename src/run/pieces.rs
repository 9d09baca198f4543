//! Reads long feature files piece by piece.
//!
//! The parser looks at all lines that it has read for each line that it reads, so that its time grows with the square of their
//! number.

use std::ops::Range;

use gherkin::{Feature, GherkinEnv, LineCol, Scenario, Span};

/// From how many lines on a file is read in pieces.
const LONG: usize = 2_000;
/// How many lines a piece has at least.
const PIECE: usize = 500;

/// The words that begin a scenario, in English.
const SCENARIO: [&str; 4] = ["Scenario:", "Scenario Outline:", "Scenario Template:", "Example:"];

/// The feature of a long file. None if it has to be read as a whole, because it is short, has rules or is in another language,
/// or because something is wrong with it.
pub(super) fn parse(text: &str) -> Option<Feature> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    if lines.len() < LONG { None } else { parse_in_pieces(&lines, PIECE) }
}

fn parse_in_pieces(lines: &[&str], least: usize) -> Option<Feature> {
    let (head, pieces) = pieces(lines, least)?;
    if head > PIECE {
        return None;
    }
    // All pieces have the feature's own lines in front, so that each is a feature with the same background.
    let head_text = lines.get(..head)?.concat();
    let mut feature = Feature::parse(&head_text, GherkinEnv::default()).ok()?;
    for piece in pieces {
        let above = piece.start - head;
        let text = format!("{head_text}{}", lines.get(piece)?.concat());
        let parsed = Feature::parse(text, GherkinEnv::default()).ok()?;
        let scenarios = parsed.scenarios.into_iter();
        feature.scenarios.extend(scenarios.map(|scenario| further_down(scenario, above)));
    }
    Some(feature)
}

/// How many lines the feature itself has, and the lines of pieces that each begin with a scenario and have `least` lines or
/// are the last.
fn pieces(lines: &[&str], least: usize) -> Option<(usize, Vec<Range<usize>>)> {
    let mut starts = starts(lines)?.into_iter();
    let head = starts.next()?;
    let (mut begin, mut pieces) = (head, Vec::new());
    for start in starts {
        if start - begin >= least {
            pieces.push(begin..start);
            begin = start;
        }
    }
    pieces.push(begin..lines.len());
    Some((head, pieces))
}

/// The lines on which scenarios begin, with their tags and comments. None if they stand under rules, or in another language.
fn starts(lines: &[&str]) -> Option<Vec<usize>> {
    let mut starts = Vec::new();
    let mut end_of_text = None;
    // Where the lines begin that belong to what comes next.
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
        if line.starts_with("Rule:") || (line.starts_with('#') && line.contains("language")) {
            return None;
        }
        if SCENARIO.iter().any(|word| line.starts_with(word)) {
            starts.push(before);
        }
        if !(line.is_empty() || line.starts_with(['#', '@'])) {
            before = number + 1;
        }
        let fence = ["\"\"\"", "```"].into_iter().find(|fence| line.starts_with(fence));
        end_of_text = fence.filter(|fence| line.matches(fence).count() < 2);
    }
    Some(starts)
}

/// The same scenario so many lines further down. Where its text begins and ends, in bytes, nobody asks for: spans are none.
fn further_down(mut scenario: Scenario, lines: usize) -> Scenario {
    let place = |position: &mut LineCol, span: &mut Span| {
        position.line += lines;
        *span = Span::default();
    };
    place(&mut scenario.position, &mut scenario.span);
    for step in &mut scenario.steps {
        place(&mut step.position, &mut step.span);
        if let Some(table) = &mut step.table {
            place(&mut table.position, &mut table.span);
        }
    }
    for examples in &mut scenario.examples {
        place(&mut examples.position, &mut examples.span);
        if let Some(table) = &mut examples.table {
            place(&mut table.position, &mut table.span);
        }
    }
    scenario
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
"#;

    #[test]
    fn a_file_in_pieces_is_the_same_as_in_one() {
        let lines: Vec<&str> = TEXT.split_inclusive('\n').collect();
        let without_spans = |mut feature: Feature| {
            feature.span = Span::default();
            feature.background.as_mut().unwrap().span = Span::default();
            feature.scenarios = feature.scenarios.into_iter().map(|it| further_down(it, 0)).collect();
            feature
        };
        let whole = without_spans(Feature::parse(TEXT, GherkinEnv::default()).unwrap());
        assert_eq!(whole.scenarios.len(), 5);
        for least in [1, 5, 10, 20, 1000] {
            let pieces = parse_in_pieces(&lines, least).map(without_spans);
            assert_eq!(pieces.as_ref(), Some(&whole), "{least}");
        }
    }

    #[test]
    fn no_piece_is_much_longer_than_asked_for() {
        let text = format!("Feature: Long\n{}", "  Scenario: One\n    Given a step\n\n".repeat(100_000));
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let (head, pieces) = pieces(&lines, PIECE).unwrap();
        assert_eq!((head, pieces.first().map(|piece| piece.start)), (1, Some(1)));
        assert!(pieces.iter().all(|piece| piece.len() <= PIECE + 3));
        assert_eq!(pieces.iter().map(Range::len).sum::<usize>(), lines.len() - head);
        let feature = parse_in_pieces(&lines[..3001], PIECE).unwrap();
        let places: Vec<usize> = feature.scenarios.iter().map(|scenario| scenario.position.line).collect();
        assert_eq!(places, (0..1000).map(|number| 3 * number + 2).collect::<Vec<_>>());
    }

    #[test]
    fn what_cannot_be_taken_apart_is_read_as_a_whole() {
        let scenario = "Scenario: One\n  Given a step\n";
        for text in [
            format!("Feature: A\nRule: B\n{scenario}"),
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
