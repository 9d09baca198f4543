//! Explains how to fix the TLS connection to a webhook.

/// A webhook whose TLS handshake with the server failed.
pub(crate) struct TlsPeer<'a> {
    /// The name of the webhook in its configuration.
    pub(crate) webhook: &'a str,
    /// The address or URL at which the server called the webhook.
    pub(crate) place: &'a str,
    /// The Service as NAMESPACE/NAME, if the `clientConfig` has one.
    pub(crate) service: Option<&'a str>,
}

/// Explains what is wrong with the certificate or the `caBundle`, and how to fix it, based on kube-apiserver's error.
///
/// Returns `None` if the error is not about TLS.
pub(crate) fn advice(error: &str, peer: &TlsPeer<'_>) -> Option<String> {
    let contains = |texts: &[&str]| texts.iter().any(|text| error.contains(text));
    let TlsPeer { webhook, place, service } = peer;
    let certs = match service {
        Some(service) => format!("`admit certs --service {service}` creates a certificate and its caBundle"),
        None => "`admit certs` creates a certificate and its caBundle".to_owned(),
    };
    Some(if contains(&["root certificates: "]) {
        format!(
            "clientConfig.caBundle of \"{webhook}\" is not a certificate: set it to the CA certificate in PEM, \
             encoded as base64; {certs}"
        )
    } else if contains(&["signed by unknown authority"]) {
        format!(
            "the caBundle of \"{webhook}\" is empty or does not contain the CA that signed the certificate of the webhook at \
             {place}: set caBundle to that CA, or start the webhook with a certificate that the CA in caBundle \
             signed; {certs}"
        )
    } else if contains(&["has expired or is not yet valid"]) {
        format!(
            "the certificate of the webhook at {place} has expired or is not yet valid: start the webhook with a new \
             one; {certs}"
        )
    } else if contains(&["certificate is valid for ", "not valid for any names", "legacy Common Name"]) {
        let expected = match service.and_then(|service| service.split_once('/')) {
            Some((namespace, name)) => format!("it must contain the DNS name {name}.{namespace}.svc"),
            None => "it must contain the host of the URL".to_owned(),
        };
        format!("the certificate of the webhook at {place} is for other names: {expected}; {certs}")
    } else if contains(&["server gave HTTP response", "first record does not look like a TLS handshake"]) {
        format!("the webhook at {place} serves HTTP: API servers call webhooks only over HTTPS")
    } else if contains(&["remote error: tls: "]) {
        format!("the webhook at {place} ended the TLS handshake: read its log")
    } else if contains(&["tls: ", "x509: "]) {
        format!(
            "the TLS handshake with the webhook at {place} failed: check its certificate and the caBundle of \
             \"{webhook}\"; {certs}"
        )
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: &str, expected: &str) {
        let peer = TlsPeer {
            webhook: "stamp.example.com",
            place: "127.0.0.1:9443",
            service: Some("stamper/webhook"),
        };
        let advice = advice(error, &peer).unwrap_or_default();
        assert!(advice.contains(expected), "{error}: {advice}");
    }

    #[test]
    fn each_tls_failure_has_its_own_advice() {
        check("x509: certificate signed by unknown authority", "does not contain the CA that signed");
        check(
            "x509: certificate has expired or is not yet valid: current time",
            "start the webhook with a new one",
        );
        check(
            "x509: certificate is valid for a.b.svc, not webhook.stamper.svc",
            "DNS name webhook.stamper.svc",
        );
        check(
            "unable to load root certificates: unable to parse bytes as PEM block",
            "caBundle of \"stamp.example.com\"",
        );
        check("http: server gave HTTP response to HTTPS client", "at 127.0.0.1:9443 serves HTTP");
        check("remote error: tls: bad certificate", "ended the TLS handshake");
        check("tls: handshake failure", "`admit certs --service stamper/webhook` creates");
        let peer = TlsPeer { webhook: "a", place: "b", service: None };
        assert_eq!(advice("dial tcp 127.0.0.1:1: connect: connection refused", &peer), None);
    }
}
