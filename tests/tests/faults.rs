//! The judge can fail: each deliberate fault is noticed by a case.

use std::sync::Arc;

use certs::CertificateAuthority;
use tests::cases;
use tests::fault::Fault;
use tests::known_differences::KnownDifferences;
use tests::replay::{Verdict, replay};

/// Those whose cases take no time.
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
async fn every_fault_is_noticed_by_a_case() {
    let known = KnownDifferences::read().unwrap();
    let authority = Arc::new(CertificateAuthority::new("admit judge CA").unwrap());
    let mut unnoticed = Vec::new();
    for fault in Fault::ALL {
        if !is_noticed(fault, &known, &authority).await {
            unnoticed.push(fault);
        }
    }
    assert!(unnoticed.is_empty(), "no case notices {unnoticed:?}");
}

async fn is_noticed(fault: Fault, known: &KnownDifferences, authority: &Arc<CertificateAuthority>) -> bool {
    for concept in CONCEPTS {
        for case in cases::find(&cases::folder(), concept).unwrap() {
            if known.of(&case.name).is_some() {
                continue;
            }
            if let Ok(Verdict::Differs(_)) = replay(&case, Arc::clone(authority), Some(fault)).await {
                return true;
            }
        }
    }
    false
}
