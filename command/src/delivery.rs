//! Decides whether the server sent a review to a webhook, based on the error of the call.

/// Whether the server sent a review, or the reason why it could not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Delivery {
    /// The server sent the review.
    Sent,
    /// The server could not connect to the webhook.
    Unreached,
    /// The TLS handshake failed, for example because the server does not trust the certificate.
    Untrusted,
}

impl Delivery {
    /// Returns the point at which a call failed, based on kube-apiserver's message.
    ///
    /// The messages of a failed connection begin with the address; other messages may quote the webhook's response.
    pub(crate) fn of_failure(reason: &str) -> Self {
        const TLS: [&str; 4] =
            ["tls: ", "x509: ", "server gave HTTP response to HTTPS client", "root certificates: "];
        const CONNECTION: [&str; 2] = ["dial tcp", "proxyconnect tcp"];
        let contains = |causes: &[&str], error: &str| causes.iter().any(|cause| error.contains(cause));
        if let Some(error) = reason.strip_prefix("could not get REST client: ") {
            return if contains(&TLS, error) { Self::Untrusted } else { Self::Unreached };
        }
        let Some(error) = reason.strip_prefix("failed to call webhook: Post \"") else { return Self::Sent };
        let is_unknown_service = error.contains(": service \"") && error.ends_with(" not found");
        if is_unknown_service || contains(&CONNECTION, error) {
            Self::Unreached
        } else if contains(&TLS, error) {
            Self::Untrusted
        } else {
            Self::Sent
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_tls_handshake_is_not_a_failed_connection() {
        for (expected, reason) in [
            (
                Delivery::Untrusted,
                "could not get REST client: unable to load root certificates: no valid certificate",
            ),
            (
                Delivery::Unreached,
                "failed to call webhook: Post \"https://a.b.svc:443/?timeout=10s\": dial tcp 127.0.0.1:1: connect: connection refused",
            ),
            (
                Delivery::Unreached,
                "failed to call webhook: Post \"https://a.b.svc:443/?timeout=10s\": service \"a\" not found",
            ),
            (
                Delivery::Untrusted,
                "failed to call webhook: Post \"https://a.b.svc:443/?timeout=10s\": tls: failed to verify certificate: x509: unknown",
            ),
            (
                Delivery::Untrusted,
                "failed to call webhook: Post \"https://a.b.svc:443/?timeout=10s\": http: server gave HTTP response to HTTPS client",
            ),
        ] {
            assert_eq!(Delivery::of_failure(reason), expected, "{reason}");
        }
        for reason in [
            "failed to call webhook: an error on the server (\"cannot reach the backend: dial tcp 127.0.0.1:1\") has prevented the request from succeeding",
            "failed to call webhook: Post \"https://a.b.svc:443/?timeout=10s\": EOF",
            "received invalid webhook response: expected response.uid",
        ] {
            assert_eq!(Delivery::of_failure(reason), Delivery::Sent, "{reason}");
        }
    }
}
