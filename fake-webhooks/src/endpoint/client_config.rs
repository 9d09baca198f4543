//! Reads the server, the CA certificates, and the token from a kubeconfig.

use std::io;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The settings to connect and authenticate to an API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientConfig {
    /// The URL of the server.
    pub(super) server: String,
    /// The trusted CA certificates in PEM format.
    pub(super) ca_bundle: String,
    /// The bearer token, or an empty string.
    pub(super) token: String,
}

/// The reason why a kubeconfig cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientConfigError {
    #[error("cannot read the kubeconfig {file}: {source}")]
    Read { file: String, source: io::Error },
    #[error("invalid kubeconfig {file}: {message}")]
    Invalid { file: String, message: String },
}

impl ClientConfig {
    /// Returns this configuration with its empty fields set from the current context of the kubeconfig `file`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is not a kubeconfig, or authenticates without a token.
    pub(super) fn or_from(self, file: &Path) -> Result<Self, ClientConfigError> {
        let name = || file.display().to_string();
        let text = output::read_for_server(file)
            .map_err(|source| ClientConfigError::Read { file: name(), source })?;
        let found = parsed(&String::from_utf8_lossy(&text), file.parent().unwrap_or(Path::new("")))
            .map_err(|message| ClientConfigError::Invalid { file: name(), message })?;
        let or = |own: String, other: String| if own.is_empty() { other } else { own };
        Ok(Self {
            server: or(self.server, found.server),
            ca_bundle: or(self.ca_bundle, found.ca_bundle),
            token: or(self.token, found.token),
        })
    }
}

/// Parses a kubeconfig, and resolves relative paths in it against `folder`.
fn parsed(text: &str, folder: &Path) -> Result<ClientConfig, String> {
    let config: Value = serde_saphyr::from_str(text).map_err(|error| error.without_snippet().to_string())?;
    let named = |list: &str, name: &str, field: &str| {
        let entries = config.get(list).and_then(Value::as_array).into_iter().flatten();
        let mut found = entries.filter(|entry| entry.get("name").and_then(Value::as_str) == Some(name));
        found.find_map(|entry| entry.get(field).cloned()).ok_or_else(|| format!("missing {field} \"{name}\""))
    };
    let text =
        |value: &Value, field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let context = named("contexts", &text(&config, "current-context"), "context")?;
    let cluster = named("clusters", &text(&context, "cluster"), "cluster")?;
    let user = named("users", &text(&context, "user"), "user")?;
    let read = |value: &Value, field: &str| {
        let file = folder.join(text(value, field));
        let bytes =
            output::read_for_server(&file).map_err(|error| format!("{field} {}: {error}", file.display()))?;
        Ok::<_, String>(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    let server = text(&cluster, "server");
    if server.is_empty() {
        return Err("missing server".to_owned());
    }
    let ca_bundle = match text(&cluster, "certificate-authority-data") {
        data if !data.is_empty() => {
            let bytes = STANDARD
                .decode(data.trim())
                .map_err(|error| format!("certificate-authority-data: {error}"))?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
        _ if cluster.get("certificate-authority").is_some() => read(&cluster, "certificate-authority")?,
        _ => String::new(),
    };
    let token = match text(&user, "token") {
        token if !token.is_empty() => token,
        _ if user.get("tokenFile").is_some() => read(&user, "tokenFile")?,
        _ if user.as_object().is_some_and(|user| !user.is_empty()) => {
            return Err("the user must have a token or a tokenFile".to_owned());
        }
        _ => String::new(),
    };
    Ok(ClientConfig { server, ca_bundle, token })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBECONFIG: &str = "
current-context: b
contexts: [{name: a, context: {cluster: no, user: no}}, {name: b, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:6443/', certificate-authority-data: cGVt}}]
users: [{name: u, user: {token: secret}}]
";

    #[test]
    fn current_context_selects_server_authority_and_token() {
        let expected = ClientConfig {
            server: "https://127.0.0.1:6443/".to_owned(),
            ca_bundle: "pem".to_owned(),
            token: "secret".to_owned(),
        };
        assert_eq!(parsed(KUBECONFIG, Path::new("")), Ok(expected));
    }

    #[test]
    fn missing_fields_of_a_kubeconfig_are_named() {
        let check = |old: &str, new: &str, expected: &str| {
            let error = parsed(&KUBECONFIG.replace(old, new), Path::new("/none")).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        };
        check("current-context: b", "", "missing context \"\"");
        check("name: c, cluster", "name: d, cluster", "missing cluster \"c\"");
        check("server: 'https://127.0.0.1:6443/', ", "", "missing server");
        check("cGVt", "'*'", "certificate-authority-data: ");
        check("token: secret", "client-key: k", "the user must have a token or a tokenFile");
        check("token: secret", "tokenFile: t", "tokenFile /none/t: ");
    }
}
