//! Every case in process against its recording.

use std::process::ExitCode;
use std::sync::Arc;

use certs::CertificateAuthority;
use libtest_mimic::{Arguments, Failed, Trial};
use tests::cases::{self, CaseFile};
use tests::known_differences::KnownDifferences;
use tests::replay::{Verdict, replay};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let found = cases::find(&cases::folder(), "*").expect("the folder of the cases is there");
    let known = Arc::new(KnownDifferences::read().expect("known-differences.toml can be read"));
    let authority = Arc::new(CertificateAuthority::new("admit judge CA").expect("a key can be made"));
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
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn agreement(
    case: &CaseFile,
    known: &KnownDifferences,
    authority: Arc<CertificateAuthority>,
) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let verdict = runtime.block_on(replay(case, authority, None))?;
    match (verdict, known.of(&case.name)) {
        (Verdict::Agrees, None) | (Verdict::Differs(_), Some(_)) => Ok(()),
        (Verdict::Differs(text), None) => Err(text.into()),
        (Verdict::Agrees, Some(entry)) => Err(format!(
            "admit does here what kube-apiserver does: `{}` in known-differences.toml is no longer true of it",
            entry.glob
        )
        .into()),
    }
}
