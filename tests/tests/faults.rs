//! Checks that the comparison with recordings detects errors: a case notices each deliberate fault.

use std::sync::Arc;

use certs::CertificateAuthority;
use tests::cases;
use tests::fault::Fault;
use tests::replay::{CaseComparison, replay};

/// Each fault with a case that notices it.
const CASES: [(Fault, &str); 20] = [
    (Fault::NoReinvocation, "reinvocation/a-change-in-the-second-round-does-not-call-earlier-webhooks"),
    (Fault::AlwaysReinvocation, "reinvocation/a-change-in-the-second-round-does-not-call-earlier-webhooks"),
    (Fault::SelectorOfTheWrongObject, "reinvocation/a-label-that-goes-away-stops-reinvocation"),
    (Fault::NothingFailsOpen, "reinvocation/a-failure-in-the-second-round-fails-open"),
    (Fault::EverythingFailsOpen, "selection/a-condition-that-fails-refuses-a-request-that-matched"),
    (Fault::NoEquivalents, "equivalence/a-conversion-that-fails-is-a-500-of-a-mutating-webhook"),
    (Fault::LostAnnotation, "reinvocation/a-change-in-the-second-round-does-not-call-earlier-webhooks"),
    (Fault::IndexOffByOne, "reinvocation/a-change-in-the-second-round-does-not-call-earlier-webhooks"),
    (Fault::DenialIsForbidden, "reinvocation/a-denial-in-the-second-round"),
    (Fault::LostWarning, "reinvocation/webhooks-are-not-called-again-without-a-change"),
    (Fault::OrderOfNames, "reinvocation/a-webhook-that-failed-open-counts-as-called"),
    (Fault::StarMatchesSubresources, "selection/a-rule-matches-the-subresources-that-it-lists"),
    (Fault::WrongCounter, "reinvocation/a-failure-in-the-second-round-fails-open"),
    (Fault::NoOldObject, "reinvocation/an-update-is-reinvoked-too"),
    (Fault::ResourceOfTheRequest, "equivalence/a-patch-applies-to-the-converted-object"),
    (Fault::TimeoutOffByOne, "reinvocation/a-change-in-the-second-round-does-not-call-earlier-webhooks"),
    (Fault::EquivalentThoughExact, "equivalence/an-equivalent-resource-matches-unless-the-policy-is-exact"),
    (Fault::PatchedTwice, "reinvocation/a-label-that-goes-away-stops-reinvocation"),
    (Fault::SameUid, "reinvocation/a-change-in-the-second-round-does-not-call-earlier-webhooks"),
    (Fault::StaleObject, "reinvocation/a-change-in-the-second-round-does-not-call-earlier-webhooks"),
];

#[test]
fn every_fault_has_a_case() {
    assert_eq!(CASES.map(|(fault, _)| fault), Fault::ALL);
}

/// Checks that each case agrees with its recording without its fault, and differs with it.
#[tokio::test]
async fn every_fault_is_noticed_by_its_case() {
    let authority = Arc::new(CertificateAuthority::new("admit judge CA").unwrap());
    for (fault, name) in CASES {
        let [case] = <[_; 1]>::try_from(cases::find(&cases::folder(), name).unwrap()).unwrap();
        let sound = replay(&case, Arc::clone(&authority), None).await;
        assert!(matches!(sound, Ok(CaseComparison::Agrees)), "{name}: {sound:?}");
        let spoilt = replay(&case, Arc::clone(&authority), Some(fault)).await;
        assert!(matches!(spoilt, Ok(CaseComparison::Differs(_))), "{name} does not notice {fault:?}");
    }
}
