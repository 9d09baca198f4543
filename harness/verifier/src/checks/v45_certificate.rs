//! V45: the certificate is valid and does not expire soon.

use std::time::Duration;

use admission_webhook_client::{CertificateFacts, Inspection};
use jiff::Timestamp;

use super::typical_request;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V45",
    title: "certificate: it is valid for the service's name, is signed by the caBundle, and does not expire \
            soon",
    severity: Severity::Error,
    why: "When a webhook's certificate expires, often exactly one year after installation, every write that \
          the webhook matches is blocked. A certificate for another name, from another authority, or with \
          only a Common Name blocks them immediately. The authority in the caBundle expires, too. A \
          short-lived certificate is renewed by its issuer, so at least a third of its lifetime must be \
          left.",
    help: "Renew the certificate automatically, for example with cert-manager.",
    source: "kubernetes/apiserver pkg/util/webhook/client.go; Go crypto/x509, Certificate.Verify; \
             rancher/rancher#35068; knative/serving#6537",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    let inspected = webhook_probe.environment.inspect(&webhook_probe.subject.webhook).await;
    let inspection = inspected.map_err(Skipped::NotChecked)?;
    if let (Some(complaint), true) = (&inspection.complaint, inspection.chain.is_empty()) {
        return Err(Skipped::not_checked(format!("the server presents no certificate: {complaint}")));
    }
    let now = Timestamp::now();
    for (what, certificate) in certificates(&inspection) {
        webhook_probe.note(format!("{what}{}: {}", name(certificate), written(days_left(certificate, now))));
    }
    let mut violations = judge(&inspection, now, webhook_probe.settings.horizon);
    if inspection.complaint.is_some() {
        violations = typical_request::with_first_request(webhook_probe, violations).await;
    }
    Ok(violations)
}

/// Returns the server's certificate and the trusted certificates, each with a description.
fn certificates(inspection: &Inspection) -> impl Iterator<Item = (&'static str, &CertificateFacts)> {
    let leaf = inspection.chain.first().map(|leaf| ("the certificate", leaf));
    leaf.into_iter().chain(inspection.trusted.iter().map(|trusted| ("the authority", trusted)))
}

/// Returns the certificate's subject with a leading space, or an empty string if it has only alternative names.
pub(super) fn name(certificate: &CertificateFacts) -> String {
    if certificate.subject.is_empty() { String::new() } else { format!(" {}", certificate.subject) }
}

/// The default minimum remaining validity.
const HORIZON: Duration = Duration::from_secs(30 * 24 * 3600);
/// A short-lived certificate must remain valid for at least its lifetime divided by this number.
const PART: u32 = 3;

fn judge(inspection: &Inspection, now: Timestamp, horizon: Option<Duration>) -> Vec<Violation> {
    if let Some(complaint) = &inspection.complaint {
        let message = format!(
            "for the server name {}, the API server rejects the certificate: {complaint}",
            inspection.server_name
        );
        return vec![Violation::new("rejected certificate", message).with_help(
            "Issue a certificate for this server name, and set caBundle to the certificate of its authority.",
        )];
    }
    let mut violations = Vec::new();
    for (what, certificate) in certificates(inspection) {
        violations.extend(ends_soon(what, certificate, now, horizon));
    }
    violations
}

/// Reports a certificate whose remaining validity is less than `horizon` or, without `horizon`, the default.
pub(super) fn ends_soon(
    what: &str,
    certificate: &CertificateFacts,
    now: Timestamp,
    horizon: Option<Duration>,
) -> Option<Violation> {
    let lifetime = certificate.not_after.duration_since(certificate.not_before).unsigned_abs();
    let horizon = horizon.unwrap_or_else(|| HORIZON.min(lifetime / PART));
    let left = certificate.not_after.duration_since(now);
    if !left.is_negative() && left.unsigned_abs() >= horizon {
        return None;
    }
    let days = days_left(certificate, now);
    let message =
        format!("{what}{} expires at {}: {}", name(certificate), certificate.not_after, written(days));
    Some(Violation::new(format!("{what} expires soon"), message).with_severity(Severity::Warning))
}

/// Returns the number of whole days until the certificate expires; negative if it has expired.
fn days_left(certificate: &CertificateFacts, now: Timestamp) -> i64 {
    certificate.not_after.duration_since(now).as_hours().div_euclid(24)
}

fn written(days: i64) -> String {
    match days {
        ..=-1 => format!("expired {} days ago", -days),
        1 => "1 day left".to_owned(),
        days => format!("{days} days left"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inspection(leaf: &str, authority: &str, complaint: Option<&str>) -> Inspection {
        let facts = |subject: &str, not_after: &str| CertificateFacts {
            subject: subject.to_owned(),
            not_before: "2025-12-31T00:00:00Z".parse().unwrap(),
            not_after: not_after.parse().unwrap(),
            is_authority: false,
            der: Vec::new(),
        };
        Inspection {
            server_name: "w.ns.svc".to_owned(),
            complaint: complaint.map(str::to_owned),
            chain: vec![facts("CN=leaf", leaf)],
            trusted: vec![facts("CN=ca", authority)],
            tls_version: None,
        }
    }

    #[track_caller]
    fn check(inspection: &Inspection, expected: &[&str]) {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let found = judge(inspection, now, Some(HORIZON));
        assert_eq!(found.iter().map(|violation| violation.kind.as_str()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn certificate_and_authority_must_not_expire_soon() {
        let (soon, late) = ("2026-01-15T00:00:00Z", "2027-01-01T00:00:00Z");
        check(&inspection(late, late, None), &[]);
        check(&inspection(soon, late, None), &["the certificate expires soon"]);
        check(&inspection(late, soon, None), &["the authority expires soon"]);
        check(&inspection(soon, soon, None), &["the certificate expires soon", "the authority expires soon"]);
        check(&inspection(late, late, Some("x509: no")), &["rejected certificate"]);
    }

    #[test]
    fn short_lived_certificate_needs_a_third_of_its_lifetime() {
        let kinds = |leaf: &str, horizon| {
            let late = "2030-01-01T00:00:00Z";
            let inspection = inspection(leaf, late, None);
            let now = "2026-01-01T00:00:00Z".parse().unwrap();
            judge(&inspection, now, horizon).len()
        };
        // The times at which certificates valid for seven days have six and a half, or two, days left.
        let (young, old) = ("2026-01-06T12:00:00Z", "2026-01-01T07:00:00Z");
        assert_eq!((kinds(young, None), kinds(young, Some(HORIZON))), (0, 1));
        assert_eq!(kinds(old, None), 1);
        assert_eq!(name(&inspection(young, young, None).chain[0]), " CN=leaf");
    }

    #[test]
    fn only_whole_days_are_counted() {
        let facts = |not_after: &str| CertificateFacts {
            subject: String::new(),
            not_before: Timestamp::UNIX_EPOCH,
            not_after: not_after.parse().unwrap(),
            is_authority: false,
            der: Vec::new(),
        };
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(days_left(&facts("2026-01-02T23:00:00Z"), now), 1);
        assert_eq!(days_left(&facts("2025-12-31T23:00:00Z"), now), -1);
    }
}
