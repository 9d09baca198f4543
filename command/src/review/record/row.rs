//! Formats a recorded request as one line of the list.

use std::fmt::Write as _;

use anstyle::Style;
use harness::chain::Verdict;
use output::{OneLine, one_line};

use crate::request_report::Report;
use crate::style::{BAD, FAINT, GOOD, NOT_DONE};

/// The headings of the columns.
const HEADINGS: [&str; 10] = [
    "NUMBER",
    "TIME",
    "USER",
    "OPERATION",
    "RESOURCE",
    "OBJECT",
    "DRY RUN",
    "DECISION",
    "WEBHOOKS CALLED",
    "ROUNDS",
];
/// The index of the column that is colored by the decision.
const DECISION: usize = 7;

/// The cells of the line for a request.
#[derive(Debug)]
pub(super) struct Row {
    cells: [String; 10],
    style: Style,
}

impl Row {
    pub(super) fn from_report(report: &Report) -> Self {
        let facts = report.facts();
        let none = || "-".to_owned();
        let or_none = |text: String| if text.is_empty() { none() } else { text };
        let cells = [
            facts.number.to_string(),
            facts.time,
            or_none(facts.user),
            facts.operation,
            facts.resource,
            or_none(facts.object),
            if facts.dry_run { "yes".to_owned() } else { none() },
            facts.decision,
            or_none(facts.webhooks.join(",")),
            if facts.rounds == 0 { none() } else { facts.rounds.to_string() },
        ];
        let style = match report.verdict() {
            Verdict::Admitted => GOOD,
            Verdict::Denied => BAD,
            Verdict::Undecided | Verdict::Unsupported | Verdict::Conditional => NOT_DONE,
        };
        Self { cells: cells.map(|cell| one_line(&cell).into_owned()), style }
    }
}

/// Formats the rows as a table with column headings.
pub(super) fn table(rows: &[Row]) -> String {
    let mut widths = HEADINGS.map(|heading| heading.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(&row.cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    let headings = HEADINGS.map(str::to_owned);
    let all = std::iter::once((&headings, None)).chain(rows.iter().map(|row| (&row.cells, Some(row.style))));
    for (cells, style) in all {
        let mut line = String::new();
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let last = column + 1 == HEADINGS.len();
            let width = if last { 0 } else { width };
            let _ = match style {
                None => write!(line, "{FAINT}{cell:width$}{FAINT:#}"),
                Some(style) if column == DECISION => write!(line, "{style}{:width$}{style:#}", OneLine(cell)),
                Some(_) => write!(line, "{cell:width$}"),
            };
            if !last {
                line.push_str("  ");
            }
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}
