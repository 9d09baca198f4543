//! Parses the flags of kube-apiserver for issuing and verifying service account tokens.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::quoting::quote;
use harness::server::{KeyError, ServiceAccountTokens, SigningKey, VerifyingKey};
use kubernetes_cel::value::{format_duration, parse_duration};
use url::Url;

use super::Log;
use crate::Failure;

/// The flags for service account tokens, named as in kube-apiserver.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Service accounts")]
pub(crate) struct ServiceAccountFlags {
    /// Issue service account tokens as this issuer; if repeated, the first one is used for new tokens, and all are
    /// accepted
    #[arg(long, value_name = "URL", default_value = "https://kubernetes.default.svc")]
    pub(crate) service_account_issuer: Vec<String>,
    /// Verify service account tokens with the private or public RSA or ECDSA keys in this PEM file; can be repeated.
    /// By default, tokens are verified with the signing key
    #[arg(long, value_name = "FILE")]
    pub(crate) service_account_key_file: Vec<PathBuf>,
    /// Sign service account tokens with the private key in this PEM file; by default, a key generated in memory
    #[arg(long, value_name = "FILE")]
    pub(crate) service_account_signing_key_file: Option<PathBuf>,
    /// Require one of these audiences in a service account token for the API. The default is the list of issuers
    #[arg(long, value_name = "AUDIENCE,...", value_delimiter = ',')]
    pub(crate) api_audiences: Vec<String>,
    /// Publish this URL of the verification keys in /.well-known/openid-configuration; by default, the URL of the keys on
    /// this server
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    pub(crate) service_account_jwks_uri: String,
    /// Limit service account tokens to this lifetime, such as 24h; longer requested lifetimes are shortened
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    pub(crate) service_account_max_token_expiration: Option<i64>,
    /// Extend the lifetime of Pod-bound tokens that are requested for 3607 seconds to one year
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) service_account_extend_token_expiration: bool,
}

/// Parses a duration in Go's syntax into seconds, rounded up.
///
/// Source: Go's time, `ParseDuration`.
///
/// # Errors
/// Returns an error if `text` is not a duration.
pub(crate) fn seconds(text: &str) -> Result<i64, String> {
    let nanoseconds = parse_duration(text);
    let nanoseconds = nanoseconds.ok_or_else(|| format!("time: invalid duration {}", quote(text)))?;
    Ok(nanoseconds.div_euclid(1_000_000_000) + i64::from(nanoseconds.rem_euclid(1_000_000_000) > 0))
}

/// Returns kube-apiserver's errors for invalid issuers.
///
/// # Errors
/// Returns an error if admit cannot determine how kube-apiserver would parse an issuer.
///
/// Source: kubernetes pkg/kubeapiserver/options/authentication.go, `Validate`.
pub(crate) fn issuer_errors(issuers: &[String]) -> Result<Vec<String>, Failure> {
    let mut errors = Vec::new();
    for (index, issuer) in issuers.iter().enumerate() {
        let quoted = quote(issuer);
        let no_url = |why: &str| {
            let parsed = format!("parse {quoted}: {why}");
            format!("service-account-issuer {quoted} contained a ':' but was not a valid URL: {parsed}")
        };
        if issuer.is_empty() {
            errors.push("service-account-issuer should not be an empty string".to_owned());
        } else if issuer.starts_with(':') {
            errors.push(no_url("missing protocol scheme"));
        } else if issuer.contains(':') && Url::parse(issuer).is_err() {
            return Err(Failure::unsupported(format!(
                "--service-account-issuer {quoted}: a URL of this form"
            )));
        } else if issuers.iter().take(index).any(|earlier| earlier == issuer) {
            errors.push(format!("service-account-issuer {quoted} is already specified"));
        }
    }
    Ok(errors)
}

/// Checks that `errors` is empty; otherwise, returns a failure that lists the errors as kube-apiserver does.
pub(crate) fn refuse(errors: &[String]) -> Result<(), Failure> {
    match errors {
        [] => Ok(()),
        [one] => Err(Failure::usage(one)),
        several => Err(Failure::usage(format!("[{}]", several.join(", ")))),
    }
}

/// The allowed range of `--service-account-max-token-expiration`, in seconds.
const MAX_EXPIRATION: std::ops::RangeInclusive<i64> = 3600..=1 << 32;
/// The requested lifetime that is extended and the lifetime that replaces it, in seconds.
const EXTENSION: [i64; 2] = [3607, 365 * 24 * 60 * 60];

impl ServiceAccountFlags {
    /// Returns how a server at `url` issues and verifies service account tokens.
    ///
    /// # Errors
    /// Returns kube-apiserver's error, or a failure if admit does not support a key or an issuer.
    ///
    /// Source: kubernetes pkg/controlplane/apiserver/options/options.go, `completeServiceAccountOptions`;
    /// pkg/kubeapiserver/options/authentication.go.
    /// Rule: TOK-13.
    pub(crate) fn tokens(self, url: &str, log: Log) -> Result<ServiceAccountTokens, Failure> {
        let max_expiration = self.service_account_max_token_expiration.filter(|seconds| *seconds != 0);
        if max_expiration.is_some_and(|seconds| !MAX_EXPIRATION.contains(&seconds)) {
            let message = "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds";
            return Err(Failure::usage(message));
        }
        let signing_key = self.service_account_signing_key_file.as_deref().map(signing_key).transpose()?;
        self.warn(max_expiration, log);
        refuse(&issuer_errors(&self.service_account_issuer)?)?;
        let mut jwks_uri = self.service_account_jwks_uri;
        if jwks_uri.is_empty() {
            jwks_uri = format!("{url}/openid/v1/jwks");
        } else if !jwks_uri.starts_with("https:") {
            let message = format!("service-account-jwks-uri requires https scheme, parsed as: {jwks_uri}");
            return Err(Failure::usage(message));
        }
        let mut keys = Vec::new();
        for path in &self.service_account_key_file {
            keys.extend(verifying_keys(path)?);
        }
        if keys.is_empty() {
            keys.extend(signing_key.as_ref().map(|key| key.public().clone()));
        }
        Ok(ServiceAccountTokens {
            issuers: self.service_account_issuer,
            api_audiences: self.api_audiences,
            signing_key: signing_key.map(Arc::new),
            keys,
            max_expiration,
            extend_expiration: self.service_account_extend_token_expiration,
            jwks_uri,
        })
    }

    fn warn(&self, max_expiration: Option<i64>, log: Log) {
        let Some(most) = max_expiration.filter(|_| self.service_account_extend_token_expiration) else {
            return;
        };
        let shown = format_duration(most.saturating_mul(1_000_000_000));
        let [requested, extended] = EXTENSION;
        if most < requested {
            log.info(&format!(
                "service-account-extend-token-expiration is true, in order to correctly trigger safe transition logic, \
                 service-account-max-token-expiration must be set longer than {requested} seconds (currently {shown})"
            ));
        }
        if most < extended {
            log.info(&format!(
                "service-account-extend-token-expiration is true, enabling tokens valid up to {extended} seconds, which is longer \
                 than service-account-max-token-expiration set to {shown}"
            ));
        }
    }
}

/// Reads the private key that signs tokens.
///
/// Source: client-go util/keyutil/key.go, `PrivateKeyFromFile`.
fn signing_key(path: &Path) -> Result<SigningKey, Failure> {
    let wrong =
        |why: String| Failure::usage(format!("failed to parse service-account-issuer-key-file: {why}"));
    let pem = output::read_for_server(path).map_err(|error| wrong(cannot_open(path, &error)))?;
    SigningKey::of_pem(&pem).map_err(|error| match error {
        KeyError::None(why) => wrong(format!("error reading private key file {}: {why}", path.display())),
        KeyError::Unsupported(what) => not_imitated("signing", path, &what),
    })
}

/// Reads the public keys that verify tokens.
///
/// Source: client-go util/keyutil/key.go, `PublicKeysFromFile`.
fn verifying_keys(path: &Path) -> Result<Vec<VerifyingKey>, Failure> {
    let pem = output::read_for_server(path).map_err(|error| Failure::usage(cannot_open(path, &error)))?;
    VerifyingKey::all_of_pem(&pem).map_err(|error| match error {
        KeyError::None(why) => {
            Failure::usage(format!("error reading public key file {}: {why}", path.display()))
        }
        KeyError::Unsupported(what) => not_imitated("verifying", path, &what),
    })
}

fn not_imitated(what: &str, path: &Path, unsupported: &dyn std::fmt::Display) -> Failure {
    Failure::unsupported(format!("{what} tokens with the key in {}: {unsupported}", path.display()))
}

/// Returns Go's error for a file that cannot be opened.
fn cannot_open(path: &Path, error: &io::Error) -> String {
    let is = |kind| error.kind() == kind;
    let why = if is(ErrorKind::NotFound) {
        "no such file or directory".to_owned()
    } else if is(ErrorKind::PermissionDenied) {
        "permission denied".to_owned()
    } else {
        error.to_string()
    };
    format!("open {}: {why}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuer_errors_are_in_the_servers_words() {
        let errors = |issuers: &[&str]| {
            let issuers: Vec<String> = issuers.iter().map(|&issuer| issuer.to_owned()).collect();
            issuer_errors(&issuers).map(|errors| errors.join("; ")).map_err(|failure| failure.code)
        };
        assert_eq!(errors(&["https://x", "kubernetes", "urn:a:b"]), Ok(String::new()));
        assert_eq!(
            errors(&["https://x", "", "https://x", ":x"]).unwrap(),
            "service-account-issuer should not be an empty string; service-account-issuer \"https://x\" is already specified; \
             service-account-issuer \":x\" contained a ':' but was not a valid URL: parse \":x\": missing protocol scheme"
        );
        assert_eq!(errors(&["http://[::1"]), Err(crate::ExitCode::Unsupported));
    }

    #[test]
    fn durations_are_parsed_as_in_go() {
        assert_eq!(seconds("1h30m"), Ok(5400));
        assert_eq!(seconds("1ms"), Ok(1));
        assert_eq!(seconds("x"), Err("time: invalid duration \"x\"".to_owned()));
    }
}
