//! Reads the credentials of a user in a kubeconfig for requests to webhooks.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use kubernetes_admission::config::ClientConfig;
use kubernetes_types::go_base64;
use kubernetes_types::quoting::system_error;
use kubernetes_types::status::Unsupported;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::exec::{ExecConfig, FromPlugin, Plugins, WrittenExec};
use crate::tls::{self, Identity};

/// The time for which a token from a file is used: one minute, minus the required remaining validity of ten seconds.
///
/// Source: client-go `transport/token_source.go`, `NewCachedFileTokenSource`.
const TOKEN_IS_GOOD_FOR: Duration = Duration::from_secs(50);

/// A user as written in a kubeconfig.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct WrittenUser {
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    username: Option<String>,
    password: Option<String>,
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<Value>,
    client_key: Option<PathBuf>,
    client_key_data: Option<Value>,
    #[serde(rename = "as")]
    impersonate: Option<String>,
    as_uid: Option<String>,
    as_groups: Option<Vec<String>>,
    as_user_extra: Option<BTreeMap<String, Vec<String>>>,
    auth_provider: Option<Value>,
    exec: Option<WrittenExec>,
}

pub(in super::super) struct User {
    pub(super) token: String,
    token_file: Option<PathBuf>,
    username: String,
    password: String,
    certificate: Option<Pem>,
    key: Option<Pem>,
    impersonation: Vec<(String, String)>,
    has_auth_provider: bool,
    exec: Option<ExecConfig>,
    /// The last content of the token file, and when it was read.
    read: Mutex<Option<(Instant, String)>>,
}

/// PEM data: inline, or the path of a file.
enum Pem {
    Data(Result<Vec<u8>, String>),
    File(PathBuf),
}

/// The reason why a user's credentials cannot be used.
#[derive(Debug)]
pub(in super::super) enum UserError {
    /// No client can be created; contains kube-apiserver's message.
    Client(String),
    /// The request cannot be sent; contains the message of Go's client.
    Request(String),
    Unsupported(Unsupported),
}

impl User {
    pub(super) fn new(written: WrittenUser, folder: &Path) -> Self {
        let path = |path: Option<PathBuf>| {
            path.filter(|path| !path.as_os_str().is_empty()).map(|path| folder.join(path))
        };
        // Inline data takes precedence over a file.
        let pem = |data: Option<Value>, file: Option<PathBuf>| {
            let data = data.map(|data| go_base64::bytes(&data));
            let data =
                data.filter(|bytes| bytes.as_ref().is_ok_and(|bytes| !bytes.is_empty()) || bytes.is_err());
            data.map(Pem::Data).or_else(|| path(file).map(Pem::File))
        };
        let mut impersonation = Vec::new();
        if let Some(user) = written.impersonate.filter(|user| !user.is_empty()) {
            let named = |name: &'static str| move |value| (name.to_owned(), value);
            impersonation.push(named("Impersonate-User")(user));
            let uid = written.as_uid.filter(|uid| !uid.is_empty());
            impersonation.extend(uid.map(named("Impersonate-Uid")));
            impersonation.extend(written.as_groups.into_iter().flatten().map(named("Impersonate-Group")));
            for (key, values) in written.as_user_extra.into_iter().flatten() {
                let name = format!("Impersonate-Extra-{}", escaped(&key));
                impersonation.extend(values.into_iter().map(|value| (name.clone(), value)));
            }
        }
        Self {
            token: written.token.unwrap_or_default(),
            token_file: path(written.token_file),
            username: written.username.unwrap_or_default(),
            password: written.password.unwrap_or_default(),
            certificate: pem(written.client_certificate_data, written.client_certificate),
            key: pem(written.client_key_data, written.client_key),
            impersonation,
            has_auth_provider: written.auth_provider.is_some(),
            exec: written.exec.map(|exec| ExecConfig::new(exec, folder)),
            read: Mutex::default(),
        }
    }

    /// Returns the client certificate and its key; `None` if the user does not have both.
    ///
    /// # Errors
    /// Returns [`UserError`] if a file cannot be read, or if kube-apiserver or admit does not support the credentials.
    ///
    /// Source: apiserver pkg/util/webhook/authentication.go, `restConfigFromKubeconfig`; client-go
    /// transport/transport.go, `loadTLSFiles`.
    /// Rule: HTTP-20.
    pub(in super::super) fn identity(&self) -> Result<Option<Identity>, UserError> {
        self.current_token()?;
        if self.has_auth_provider {
            return Err(UserError::Client("auth provider not supported".to_owned()));
        }
        if let Some(exec) = &self.exec {
            exec.version()?;
        }
        let (Some(certificate), Some(key)) = (&self.certificate, &self.key) else { return Ok(None) };
        let certificate = certificate.read()?;
        let key = key.read()?;
        Ok(Some(Identity { certificate, key }))
    }

    /// Runs the credential plugin for calls to `webhook`; returns `None` if the user has other credentials.
    ///
    /// # Errors
    /// Returns kube-apiserver's error if the plugin cannot be run.
    ///
    /// Source: client-go plugin/pkg/client/auth/exec/exec.go, `UpdateTransportConfig`.
    pub(in super::super) async fn ask_plugin(
        &self,
        plugins: &Plugins,
        webhook: &ClientConfig,
    ) -> Result<Option<FromPlugin>, UserError> {
        let Some(exec) = &self.exec else { return Ok(None) };
        let has_token = !self.token.is_empty() || self.token_file.is_some();
        let has_certificate = self.certificate.is_some() && self.key.is_some();
        if has_token || self.has_password() || has_certificate {
            return Ok(None);
        }
        // As in Go's client, errors in the bundle come first.
        tls::verifier(&webhook.ca_bundle).map_err(UserError::Client)?;
        FromPlugin::ask(plugins.plugin(exec, webhook)?).await.map(Some)
    }

    /// Returns whether the user has a name for basic authentication. A password without a name is ignored.
    ///
    /// Source: client-go `transport/config.go`, `HasBasicAuth`.
    fn has_password(&self) -> bool {
        !self.username.is_empty()
    }

    /// Returns the authentication headers for all requests of a call, including redirected requests.
    ///
    /// # Errors
    /// Returns [`UserError`] if credentials exclude each other, or if a header cannot contain them.
    ///
    /// Source: client-go `transport/round_trippers.go`, `HTTPWrappersForConfig`.
    /// Rule: HTTP-20.
    pub(in super::super) fn headers(&self, plugin: Option<&FromPlugin>) -> Result<HeaderMap, UserError> {
        let mut headers = HeaderMap::new();
        let token = match plugin {
            Some(plugin) => plugin.printed.token.clone(),
            None => self.current_token()?,
        };
        let has_password = self.has_password();
        if has_password && !token.is_empty() {
            let text = "username/password or bearer token may be set, but not both";
            return Err(UserError::Client(text.to_owned()));
        }
        let authorization = if has_password {
            format!("Basic {}", BASE64_STANDARD.encode(format!("{}:{}", self.username, self.password)))
        } else {
            format!("Bearer {token}")
        };
        if has_password || !token.is_empty() {
            let mut value = header_value("Authorization", &authorization)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        for (name, value) in &self.impersonation {
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_error| {
                UserError::Request(format!(
                    "net/http: invalid header field name {}",
                    kubernetes_types::quoting::quote(name)
                ))
            })?;
            headers.append(header, header_value(name, value)?);
        }
        Ok(headers)
    }

    /// Returns the bearer token. A readable token file takes precedence over a token in the kubeconfig.
    ///
    /// # Errors
    /// Returns [`UserError`] if the file cannot be read and there is no other token.
    fn current_token(&self) -> Result<String, UserError> {
        let Some(file) = &self.token_file else { return Ok(self.token.clone()) };
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((since, token)) = &*known
            && since.elapsed() < TOKEN_IS_GOOD_FOR
        {
            return Ok(token.clone());
        }
        let found = read(file).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
        match (found, &*known) {
            (Ok(token), _) if !token.is_empty() => {
                *known = Some((Instant::now(), token.clone()));
                Ok(token)
            }
            // Another process may be writing the file: use the last token.
            (_, Some((_, token))) => Ok(token.clone()),
            (Err(error @ UserError::Unsupported(_)), None) => Err(error),
            (Err(error), None) if self.token.is_empty() => Err(error),
            (_, None) => Ok(self.token.clone()),
        }
    }
}

impl Pem {
    fn read(&self) -> Result<Vec<u8>, UserError> {
        match self {
            Self::Data(data) => data.clone().map_err(UserError::Client),
            Self::File(file) => read(file),
        }
    }
}

/// Reads a file that contains a certificate, a key, or a token.
///
/// # Errors
/// Returns Go's error, such as `open /x: no such file or directory`, or an error for a file that is too large.
fn read(file: &Path) -> Result<Vec<u8>, UserError> {
    output::read_regular(file).map_err(|error| {
        if matches!(error.kind(), io::ErrorKind::FileTooLarge | io::ErrorKind::Unsupported) {
            let what = format!("a file of the kubeconfig that is {error} ({})", file.display());
            UserError::Unsupported(Unsupported { what })
        } else {
            UserError::Client(format!("open {}: {}", file.display(), system_error(&error)))
        }
    })
}

fn header_value(name: &str, value: &str) -> Result<HeaderValue, UserError> {
    HeaderValue::from_bytes(value.as_bytes()).map_err(|_error| {
        UserError::Request(format!(
            "net/http: invalid header field value for {}",
            kubernetes_types::quoting::quote(name)
        ))
    })
}

/// Escapes a key of `as-user-extra` for the name of a header.
///
/// Source: client-go `transport/round_trippers.go`, `headerKeyEscape`.
fn escaped(key: &str) -> String {
    let is_plain =
        |byte: u8| byte != b'%' && (byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte));
    key.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn user(written: Value, folder: &Path) -> User {
        User::new(serde_json::from_value(written).unwrap(), folder)
    }

    #[track_caller]
    fn check(written: Value, expect: &[(&str, &str)]) {
        let headers = user(written, Path::new("/")).headers(None).unwrap();
        let found: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn credentials_are_sent_as_headers() {
        check(json!({}), &[]);
        check(json!({"token": "t"}), &[("authorization", "Bearer t")]);
        check(json!({"username": "a", "password": "b"}), &[("authorization", "Basic YTpi")]);
        check(json!({"username": "a"}), &[("authorization", "Basic YTo=")]);
        check(json!({"password": "b"}), &[]);
        check(json!({"token": "t", "password": "b"}), &[("authorization", "Bearer t")]);
        check(
            json!({"as": "jane", "as-uid": "7", "as-groups": ["g", "h"], "as-user-extra": {"a/b%": ["1"]}}),
            &[
                ("impersonate-user", "jane"),
                ("impersonate-uid", "7"),
                ("impersonate-group", "g"),
                ("impersonate-group", "h"),
                ("impersonate-extra-a%2fb%25", "1"),
            ],
        );
        check(json!({"as-groups": ["g"]}), &[]);
    }

    #[test]
    fn credentials_that_are_invalid_in_headers_are_an_error() {
        let error = |written: Value| user(written, Path::new("/")).headers(None).unwrap_err();
        let both = error(json!({"token": "t", "username": "a"}));
        assert!(
            matches!(both, UserError::Client(text) if text.starts_with("username/password or bearer token"))
        );
        let broken = error(json!({"token": "a\nb"}));
        assert!(
            matches!(broken, UserError::Request(text) if text == "net/http: invalid header field value for \"Authorization\"")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_file_is_read_again_after_a_while() {
        let folder = std::env::temp_dir().join(format!("admit-{}", uuid::Uuid::new_v4()));
        fs::create_dir(&folder).unwrap();
        let file = folder.join("token");
        let user = user(json!({"token": "spare", "tokenFile": "token"}), &folder);
        assert_eq!(user.current_token().unwrap(), "spare");
        fs::write(&file, "one\n").unwrap();
        assert_eq!(user.current_token().unwrap(), "one");
        fs::write(&file, "two").unwrap();
        assert_eq!(user.current_token().unwrap(), "one");
        tokio::time::advance(TOKEN_IS_GOOD_FOR).await;
        assert_eq!(user.current_token().unwrap(), "two");
        fs::remove_dir_all(&folder).unwrap();
        tokio::time::advance(TOKEN_IS_GOOD_FOR).await;
        assert_eq!(user.current_token().unwrap(), "two");
    }

    #[test]
    fn a_certificate_needs_a_key() {
        let identity = |written: Value| user(written, Path::new("/nowhere")).identity();
        assert!(identity(json!({"client-certificate": "c"})).unwrap().is_none());
        let found =
            identity(json!({"client-certificate-data": "Yw==", "client-key-data": "aw=="})).unwrap().unwrap();
        assert_eq!((found.certificate, found.key), (b"c".to_vec(), b"k".to_vec()));
        for (written, text) in [
            (
                json!({"client-certificate": "c", "client-key": "k"}),
                "open /nowhere/c: no such file or directory",
            ),
            (json!({"tokenFile": "t"}), "open /nowhere/t: no such file or directory"),
            (json!({"auth-provider": {"name": "gcp"}}), "auth provider not supported"),
        ] {
            let error = identity(written).err().unwrap();
            assert!(matches!(&error, UserError::Client(found) if found == text), "{error:?}");
        }
        let endless =
            user(json!({"client-certificate": "zero", "client-key": "zero"}), Path::new("/dev")).identity();
        assert!(matches!(&endless, Err(UserError::Unsupported(what))
                if what.what == "a file of the kubeconfig that is not a regular file (/dev/zero)"));
    }
}
