//! Determines what a finding claims about an API server.

/// A claim about an API server that a finding makes. The `proof.feature` of the finding asserts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The requests have a certain outcome, such as denied or failed open.
    ///
    /// A finding with another claim also makes this claim if one of its requests is not admitted.
    Ending,
    /// The webhook changes the object of the last request.
    Change,
    /// The webhook changes the object of the last request, and the result differs from the stored object.
    Drift,
    /// The requests result in different objects.
    Difference,
    /// The webhook changes the object of the last request, and the API server drops the change.
    Dropped,
    /// The object lacks a field that another webhook added.
    LostAddition,
    /// The object lacks a field that the client sent.
    LostField,
    /// No request to an API server can show the finding; contains the reason.
    None(&'static str),
}

const ALONE: &str = "it is about the webhook itself, regardless of what an API server does with its response";
const VARYING: &str = "it shows only in several requests, whose responses differ by chance or under load";
const WRITES: &str =
    "it is about what the webhook writes, which only the API server of --api-server-out records";
const LATER: &str = "it is about future API servers: the current one drops the fields or does not send them";
const EARLIER: &str =
    "it is about requests that this API server does not send, such as those of another version";
const DECLARED: &str = "it is about the configuration, and no single request shows it";
const STRAIN: &str =
    "it shows only over time, under load, or while the webhook is stopped or its certificate is renewed";
const SLOWNESS: &str =
    "it shows only in the duration of a request while the webhook hangs, and no step measures time";
const CONVERSION: &str =
    "it is about the response of a conversion webhook to a review that is sent without a request";
const VALIDATION: &str = "it is about the validation of the server, which runs after the webhooks";

/// Returns the claim of a finding of the given check and kind.
pub(super) fn claim(check: &str, kind: &str) -> Claim {
    match check {
        _ if kind.starts_with("the API server rejects") => Claim::None(VALIDATION),
        "V31" if kind.starts_with("overwrites") => Claim::None(VALIDATION),
        "V09" if kind.contains("replacement") => Claim::Drift,
        "V01" | "V04" | "V05" | "V07" | "V09" | "V10" | "V18" | "V21" | "V34" => Claim::Change,
        // The final object shows whether a webhook is called in another version (V33).
        "V02" | "V06" | "V08" | "V33" => Claim::Difference,
        "V38" if !kind.starts_with("writes") => Claim::Difference,
        "V03" => Claim::LostAddition,
        "V17" => Claim::LostField,
        "V31" if kind.starts_with("changes") => Claim::Dropped,
        "V50" if kind == "may delay lease renewals too long" => Claim::None(SLOWNESS),
        "V15" | "V22" | "V24" | "V28" | "V29" | "V30" | "V31" | "V32" | "V36" | "V45" | "V47" | "V48"
        | "V49" | "V50" | "V54" | "V55" => Claim::Ending,
        "V19" if kind == "does not decode" => Claim::Ending,
        "V25" if kind == "no message" || kind == "code" => Claim::Ending,
        "V11" | "V12" | "V13" => Claim::None(VARYING),
        "V14" | "V35" => Claim::None(LATER),
        "V16" | "V20" | "V25" | "V26" | "V27" | "V37" => Claim::None(ALONE),
        "V19" => Claim::None(VALIDATION),
        "V23" => Claim::None(EARLIER),
        "V38" | "V39" | "V40" => Claim::None(WRITES),
        "V41" | "V42" | "V43" | "V44" | "V46" => Claim::None(STRAIN),
        "V59" | "V60" | "V61" | "V62" | "V63" | "V64" | "V65" | "V66" | "V67" => Claim::None(CONVERSION),
        _ => Claim::None(DECLARED),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use harness::verify::checks;

    use super::*;

    #[test]
    fn checks_without_a_feature_are_documented() {
        let is_none = |id: &&str| matches!(claim(id, ""), Claim::None(_));
        let ids: Vec<&str> = checks::ALL.iter().map(|check| check.id).filter(is_none).collect();
        let expected = "V11 V12 V13 V14 V16 V19 V20 V23 V25 V26 V27 V35 V37 V39 V40 V41 V42 V43 V44 V46 V51 V52 V53 V56 \
                        V57 V58 V59 V60 V61 V62 V63 V64 V65 V66 V67";
        assert_eq!(ids, expected.split_whitespace().collect::<Vec<_>>());
        let documented = include_str!("../../../../docs/guide/verify-proofs.md")
            .split_once("Other findings have no feature");
        let (table, _) = documented.and_then(|(_, rest)| rest.split_once("\n#")).expect("a section");
        let words = table.split(|letter: char| !letter.is_ascii_alphanumeric());
        let named: BTreeSet<&str> =
            words.filter(|word| checks::ALL.iter().any(|check| check.id == *word)).collect();
        // Some findings of these checks do not have a feature.
        let in_part = ["V04", "V05", "V07", "V09", "V10", "V31", "V34", "V38", "V50"];
        assert_eq!(named, ids.iter().copied().chain(in_part).collect());
        let declared = |id: &&str| claim(id, "") == Claim::None(DECLARED);
        let declared: Vec<&str> = ids.into_iter().filter(declared).collect();
        assert_eq!(declared, ["V51", "V52", "V53", "V56", "V57", "V58"]);
        assert_eq!(
            (claim("V25", "no message"), claim("V38", "writes on dry runs")),
            (Claim::Ending, Claim::None(WRITES))
        );
    }
}
