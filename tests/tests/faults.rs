//! Checks that the comparison with recordings detects errors: at least one case detects each deliberate fault.

use std::sync::Arc;

use certs::CertificateAuthority;
use tests::cases;
use tests::fault::Fault;
use tests::known_differences::KnownDifferences;
use tests::replay::{CaseComparison, replay};

/// The concepts whose cases are fast.
const CONCEPTS: [&str; 8] = [
    "reinvocation/*",
    "selection/*",
    "audit/*",
    "errors/*",
    "warnings/*",
    "equivalence/*",
    "loading/*",
    "requests/*",
];

#[tokio::test]
#[expect(clippy::print_stdout, reason = "which case notices a fault is for people who ask with --nocapture")]
async fn every_fault_is_noticed_by_a_case() {
    let known = KnownDifferences::read().unwrap();
    let authority = Arc::new(CertificateAuthority::new("admit judge CA").unwrap());
    let mut unnoticed = Vec::new();
    for fault in Fault::ALL {
        match noticed_by(fault, &known, &authority).await {
            Some(case) => println!("{fault:?}: {case}"),
            None => unnoticed.push(fault),
        }
    }
    assert!(unnoticed.is_empty(), "no case notices {unnoticed:?}");
}

/// Returns the first case that agrees without the fault and differs with it.
async fn noticed_by(
    fault: Fault,
    known: &KnownDifferences,
    authority: &Arc<CertificateAuthority>,
) -> Option<String> {
    for concept in CONCEPTS {
        for case in cases::find(&cases::folder(), concept).unwrap_or_default() {
            if known.find(&case.name).is_some() {
                continue;
            }
            let spoilt = replay(&case, Arc::clone(authority), Some(fault)).await;
            if matches!(spoilt, Ok(CaseComparison::Differs(_)))
                && matches!(replay(&case, Arc::clone(authority), None).await, Ok(CaseComparison::Agrees))
            {
                return Some(case.name);
            }
        }
    }
    None
}
