//! Warns about certificates in Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::kinds::common::fields::{get, text};
use crate::kinds::common::warnings::Warnings;

/// Warns about a TLS Secret whose certificate or key does not contain a PEM block.
///
/// Does not check the content of PEM blocks.
///
/// Source: kubernetes pkg/registry/core/secret/strategy.go, `warningsForSecret`, which shows the errors of Go's
/// crypto/tls, `X509KeyPair`.
/// Rule: VLO-28.
pub(crate) fn secret(warnings: &mut Warnings, secret: &Value, _: Option<&Value>) {
    if text(secret, "type") != "kubernetes.io/tls" {
        return;
    }
    for (field, what) in [("tls.crt", "certificate"), ("tls.key", "key")] {
        let data = STANDARD.decode(text(get(secret, "data"), field)).unwrap_or_default();
        let has_block = data.windows(BEGIN.len()).any(|found| found == BEGIN);
        if !has_block {
            warnings.push(format!("tls: failed to find any PEM data in {what} input"));
            return;
        }
    }
}

const BEGIN: &[u8] = b"-----BEGIN ";
