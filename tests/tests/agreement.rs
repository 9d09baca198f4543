//! Runs every case in process, and compares the result with its recording.

use std::process::ExitCode;
use std::sync::Arc;

use certs::CertificateAuthority;
use libtest_mimic::{Arguments, Failed, Trial};
use tests::cases::{self, CaseFile};
use tests::known_differences::KnownDifferences;
use tests::own_answer::OwnAnswer;
use tests::replay::{self, CaseComparison};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments = Arguments::from_args();
    let found = cases::find(&cases::folder(), "*")?;
    let known = Arc::new(KnownDifferences::read()?);
    let authority = Arc::new(CertificateAuthority::new("admit judge CA")?);
    let mut trials: Vec<Trial> = found
        .iter()
        .map(|case| {
            let (case, known, authority) = (case.clone(), Arc::clone(&known), Arc::clone(&authority));
            Trial::test(case.name.clone(), move || agreement(&case, &known, authority))
        })
        .collect();
    trials.push(Trial::test("every known difference is one of a case", move || {
        let stale =
            known.entries.iter().find(|it| !found.iter().any(|case| cases::matches(&it.glob, &case.name)));
        stale.map_or(Ok(()), |entry| Err(Failed::from(format!("no case matches {}", entry.glob))))
    }));
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
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
