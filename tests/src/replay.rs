//! Runs a case in process and compares the result with its recording.

use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;

use certs::CertificateAuthority;
use serde_json::{Value, json};

use crate::case::Case;
use crate::cases::CaseFile;
use crate::difference::{Difference, differences, side_by_side};
use crate::fault::Fault;
use crate::names::Names;
use crate::recording::Recording;
use crate::run::{Manner, run_in_process};

/// The result of the comparison.
#[derive(Debug)]
pub enum CaseComparison {
    /// The result of admit agrees with the recording.
    Agrees,
    /// The result of admit differs. Contains a description of the differences.
    Differs(String),
}

/// Runs the case in process and compares the result.
///
/// # Errors
/// Returns an error with instructions if the recording is missing, or the case cannot run.
pub async fn replay(
    case: &CaseFile,
    authority: Arc<CertificateAuthority>,
    fault: Option<Fault>,
) -> Result<CaseComparison, String> {
    verdict(case, &answer(case, authority, fault).await?)
}

/// Returns the result of the case in admit. If admit cannot prepare the case, the result contains only `error`.
///
/// # Errors
/// Returns an error if the case cannot be read.
pub async fn answer(
    case: &CaseFile,
    authority: Arc<CertificateAuthority>,
    fault: Option<Fault>,
) -> Result<Value, String> {
    let place = case.path().display().to_string();
    let text = fs::read_to_string(case.path()).map_err(|error| format!("{place}: {error}"))?;
    let manner = Manner { fault, ..Manner::default() };
    let answer = run_in_process(&text, authority, manner).await;
    Ok(answer.unwrap_or_else(|error| json!({"error": error.to_string()})))
}

/// Compares admit's result for a case with its recording.
///
/// # Errors
/// Returns an error with instructions if the recording is missing.
pub fn verdict(case: &CaseFile, actual: &Value) -> Result<CaseComparison, String> {
    let place = case.path().display().to_string();
    let text = fs::read_to_string(case.path()).map_err(|error| format!("{place}: {error}"))?;
    let recording = Recording::read(&case.recording()).map_err(|error| {
        format!("{place}: no recording: {error}\n  make it with: just record {}", case.name)
    })?;
    // If admit cannot prepare the case, this is a difference, because the real server could.
    if let Some(error) = actual.get("error").and_then(Value::as_str) {
        return Ok(CaseComparison::Differs(format!("{place}: admit does not run it: {error}")));
    }
    Ok(compare(&place, &text, &recording, actual))
}

/// Compares a result with the closest alternative of the recording.
pub(crate) fn compare(place: &str, text: &str, recording: &Recording, actual: &Value) -> CaseComparison {
    let nearest = recording
        .alternatives
        .iter()
        .map(|expected| differences(expected, actual))
        .min_by_key(Vec::len)
        .unwrap_or_default();
    if nearest.is_empty() {
        return CaseComparison::Agrees;
    }
    let mut shown = String::new();
    let lines = lines(text);
    let mut rest = nearest.as_slice();
    while let Some(first) = rest.first() {
        let request = request_of(first);
        let together = rest.iter().take_while(|it| request_of(it) == request).count();
        let (these, others) = rest.split_at(together);
        let line = request.and_then(|number| lines.get(number)).copied().unwrap_or(1);
        let what = request.map_or("metrics".to_owned(), |number| format!("request {}", number + 1));
        let _ = write!(shown, "{place}:{line}: {what}\n{}", side_by_side(these));
        rest = others;
    }
    if recording.alternatives.len() > 1 {
        let _ = writeln!(shown, "(the nearest of {} alternatives)", recording.alternatives.len());
    }
    CaseComparison::Differs(shown)
}

fn request_of(difference: &Difference) -> Option<usize> {
    difference.path.strip_prefix("requests[")?.split(']').next()?.parse().ok()
}

/// Returns the line number of each request in a case file.
fn lines(text: &str) -> Vec<u64> {
    let names = Names::random();
    let case = Case::parse(&names.expand(text));
    case.map_or_else(
        |_| Vec::new(),
        |case| case.requests.iter().map(|request| request.referenced.line()).collect(),
    )
}
