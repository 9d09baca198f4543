//! Runs every case in process, and compares the result with its recording.
//!
//! Without a filter, every fourth case of each concept runs. The others are reported as ignored and run with
//! `--ignored` or `--include-ignored`.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use certs::CertificateAuthority;
use libtest_mimic::{Arguments, Failed, Trial};
use tests::cases::{self, CaseFile};
use tests::known_differences::KnownDifferences;
use tests::own_answer::OwnAnswer;
use tests::replay::{self, CaseComparison};

/// One of this many cases of a concept runs by default.
const SAMPLE: usize = 4;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments = Arguments::from_args();
    let found = cases::find(&cases::folder(), "*")?;
    let known = Arc::new(KnownDifferences::read()?);
    let authority = Arc::new(CertificateAuthority::new("admit judge CA")?);
    let samples = samples(&found);
    let mut trials: Vec<Trial> = found
        .iter()
        .map(|case| {
            let is_ignored = arguments.filter.is_none() && !samples.contains(&case.name);
            let (case, known, authority) = (case.clone(), Arc::clone(&known), Arc::clone(&authority));
            let trial = Trial::test(case.name.clone(), move || agreement(&case, &known, authority));
            trial.with_ignored_flag(is_ignored)
        })
        .collect();
    trials.push(Trial::test("every known difference is one of a case", move || {
        let stale =
            known.entries.iter().find(|it| !found.iter().any(|case| cases::matches(&it.glob, &case.name)));
        stale.map_or(Ok(()), |entry| Err(Failed::from(format!("no case matches {}", entry.glob))))
    }));
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

/// Returns the names of the cases that run by default: the first of each concept, and every fourth after it.
fn samples(cases: &[CaseFile]) -> BTreeSet<String> {
    let concept = |case: &CaseFile| case.name.split('/').next().unwrap_or_default().to_owned();
    let concepts = cases.chunk_by(|case, next| concept(case) == concept(next));
    concepts.flat_map(|cases| cases.iter().step_by(SAMPLE)).map(|case| case.name.clone()).collect()
}

fn agreement(
    case: &CaseFile,
    known: &KnownDifferences,
    authority: Arc<CertificateAuthority>,
) -> Result<(), Failed> {
    // The clock only advances when the client, the server, and the webhooks all wait: a webhook receives each call before the
    // call times out, however slow the machine is.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    let answer = runtime.block_on(replay::answer(case, authority, None))?;
    let entry = known.find(&case.name);
    if entry.is_none() && case.own_answer().exists() {
        let path = case.own_answer();
        return Err(format!("{} is of no known difference: remove it", path.display()).into());
    }
    match (replay::verdict(case, &answer)?, entry) {
        (CaseComparison::Agrees, None) => Ok(()),
        (CaseComparison::Differs(_), Some(_)) => match OwnAnswer::read(case)?.difference(&answer) {
            None => Ok(()),
            Some(shown) => Err(format!(
                "admit differs here, as is known, but in another way than before; if that is right, write it down with: cargo \
                 run -p tests -- own '{}'\n{shown}",
                case.name
            )
            .into()),
        },
        (CaseComparison::Differs(text), None) => Err(text.into()),
        (CaseComparison::Agrees, Some(entry)) => Err(format!(
            "admit does here what kube-apiserver does: `{}` in known-differences.toml is no longer true of it",
            entry.glob
        )
        .into()),
    }
}
