//! A case in process against its recording.

use std::fs;
use std::sync::Arc;

use certs::CertificateAuthority;
use serde_json::Value;

use crate::case::Case;
use crate::cases::CaseFile;
use crate::difference::{Difference, differences, side_by_side};
use crate::fault::Fault;
use crate::names::Names;
use crate::recording::Recording;
use crate::run::{Manner, run_in_process};

/// How admit and the recording differ.
#[derive(Debug)]
pub enum Verdict {
    /// They do not.
    Agrees,
    /// They do; the text shows where.
    Differs(String),
}

/// Runs the case in process and compares.
///
/// # Errors
/// There is no recording, or the case cannot be run: what to do.
pub async fn replay(
    case: &CaseFile,
    authority: Arc<CertificateAuthority>,
    fault: Option<Fault>,
) -> Result<Verdict, String> {
    let place = case.path().display().to_string();
    let text = fs::read_to_string(case.path()).map_err(|error| format!("{place}: {error}"))?;
    let recording = Recording::read(&case.recording()).map_err(|error| {
        format!("{place}: no recording: {error}\n  make it with: just record {}", case.name)
    })?;
    let manner = Manner { fault, ..Manner::default() };
    let actual = match run_in_process(&text, authority, manner).await {
        Ok(actual) => actual,
        // What admit cannot even prepare is a difference: the real server could.
        Err(error) => return Ok(Verdict::Differs(format!("{place}: admit does not run it: {error}"))),
    };
    Ok(compare(&place, &text, &recording, &actual))
}

/// Compares with the nearest alternative of the recording.
pub(crate) fn compare(place: &str, text: &str, recording: &Recording, actual: &Value) -> Verdict {
    let nearest = recording
        .alternatives
        .iter()
        .map(|expected| differences(expected, actual))
        .min_by_key(Vec::len)
        .unwrap_or_default();
    if nearest.is_empty() {
        return Verdict::Agrees;
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
        shown.push_str(&format!("{place}:{line}: {what}\n{}", side_by_side(these)));
        rest = others;
    }
    if recording.alternatives.len() > 1 {
        shown.push_str(&format!("(the nearest of {} alternatives)\n", recording.alternatives.len()));
    }
    Verdict::Differs(shown)
}

fn request_of(difference: &Difference) -> Option<usize> {
    difference.path.strip_prefix("requests[")?.split(']').next()?.parse().ok()
}

/// The line of each request.
fn lines(text: &str) -> Vec<u64> {
    let names = Names::random();
    let case = Case::parse(&names.expand(text));
    case.map_or_else(
        |_| Vec::new(),
        |case| case.requests.iter().map(|request| request.referenced.line()).collect(),
    )
}
