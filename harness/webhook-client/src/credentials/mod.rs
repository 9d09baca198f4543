//! Reads the credentials that the API server sends to webhooks: the users in a kubeconfig, by host and port.

mod answer;
mod exec;
mod program;
mod user;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use kubernetes_admission::config::{Phase, WebhookTarget};
use serde::Deserialize;
use url::Url;

pub(super) use self::exec::{FromPlugin, Plugins};
use self::user::WrittenUser;
pub(super) use self::user::{User, UserError};

/// The credentials of the admission plugins `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook`.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "there are two plugins that call webhooks")]
pub struct WebhookCredentials {
    /// The credentials for mutating webhooks.
    pub mutating: Credentials,
    /// The credentials for validating webhooks.
    pub validating: Credentials,
}

impl WebhookCredentials {
    /// Returns the credential plugins. Both admission plugins share them.
    ///
    /// As in client-go, a credential plugin runs once for all users with the same configuration.
    pub(super) fn plugins(&self) -> &Plugins {
        &self.mutating.plugins
    }

    pub(super) fn for_phase(&self, phase: Phase) -> &Credentials {
        match phase {
            Phase::Mutating => &self.mutating,
            Phase::Validating => &self.validating,
        }
    }
}

/// The users in the kubeconfig that `kubeConfigFile` of a `WebhookAdmissionConfiguration` names.
///
/// By default there are no users, and all calls are anonymous.
#[derive(Clone, Default)]
pub struct Credentials {
    users: HashMap<String, Arc<User>>,
    /// The user of the current context.
    current: Option<Arc<User>>,
    plugins: Plugins,
}

/// Formats the credentials without their secrets.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("users", &self.users.len()).finish_non_exhaustive()
    }
}

/// The fields of a kubeconfig that matter for webhooks.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Kubeconfig {
    current_context: Option<String>,
    contexts: Option<Vec<NamedContext>>,
    users: Option<Vec<NamedUser>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Context {
    user: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NamedUser {
    name: String,
    user: WrittenUser,
}

impl Credentials {
    /// Parses a kubeconfig in YAML or JSON. Relative paths are resolved against `folder`.
    ///
    /// Token and certificate files are read when a webhook is called.
    ///
    /// # Errors
    /// Returns a message about a duplicate user or about a syntax error, with the line and the column.
    ///
    /// Source: client-go `tools/clientcmd/{loader,api/v1/conversion}.go`.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        let written: Option<Kubeconfig> =
            serde_saphyr::from_str(text).map_err(|error| error.without_snippet().to_string())?;
        let written = written.unwrap_or_default();
        let mut users = HashMap::new();
        for NamedUser { name, user } in written.users.unwrap_or_default() {
            if users.insert(name.clone(), Arc::new(User::new(user, folder))).is_some() {
                return Err(format!("users: there are two with the name {name:?}"));
            }
        }
        let context = written.current_context.unwrap_or_default();
        let current = written.contexts.unwrap_or_default().into_iter().find(|named| named.name == context);
        let current = current.filter(|_| !context.is_empty()).and_then(|named| {
            let user = named.context.user;
            users.get(&user).filter(|_| !user.is_empty()).cloned()
        });
        Ok(Self { users, current, plugins: Plugins::default() })
    }

    /// Returns the user for calls to `target`; `None` for anonymous calls.
    ///
    /// The first match wins: the user for the host and port, for a wildcard, for all hosts, or of the current context.
    ///
    /// Source: apiserver pkg/util/webhook/authentication.go, `clientConfig`.
    /// Rule: HTTP-19.
    pub(super) fn user(&self, target: &WebhookTarget) -> Option<&Arc<User>> {
        if self.users.is_empty() {
            return None;
        }
        let target = host_and_port(target);
        let host = target.strip_suffix(":443").map(|host| host.trim_matches(['[', ']']));
        let named = |target: &str| {
            let suffixes = target.match_indices('.').filter_map(|(dot, _)| target.get(dot..));
            let wildcards = suffixes.map(|suffix| format!("*{suffix}"));
            self.users.get(target).or_else(|| wildcards.into_iter().find_map(|name| self.users.get(&name)))
        };
        named(&target)
            .or_else(|| host.and_then(named))
            .or_else(|| self.users.get("*"))
            .or(self.current.as_ref())
    }
}

/// Returns the `HOST:PORT` of `target`. In the kubeconfig, this is the name of the user for calls to `target`.
///
/// Source: apiserver pkg/util/webhook/client.go, `hookClientConfigForHook`.
fn host_and_port(target: &WebhookTarget) -> String {
    let authority = target.authority();
    match target {
        // The default port of the scheme may also be specified.
        WebhookTarget::Url(url)
            if !Url::parse(url).is_ok_and(|url| url.port().is_some()) && !authority.ends_with(":443") =>
        {
            format!("{authority}:443")
        }
        WebhookTarget::Url(_) | WebhookTarget::Service(_) => authority,
    }
}

#[cfg(test)]
mod tests {
    use kubernetes_admission::config::ServiceReference;

    use super::*;

    const KUBECONFIG: &str = r#"
apiVersion: v1
kind: Config
current-context: here
contexts:
- {name: here, context: {user: current, cluster: nowhere}}
users:
- {name: current, user: {token: current}}
- {name: "exact.test:8443", user: {token: exact}}
- {name: "*.test:8443", user: {token: wildcard}}
- {name: "*.sub.test:8443", user: {token: closer}}
- {name: "no-port.test", user: {token: no-port}}
- {name: "*.port.test", user: {token: no-port-wildcard}}
- {name: "a.b.svc:443", user: {token: service}}
- {name: "::1", user: {token: six}}
"#;

    fn service(name: &str, port: u16) -> WebhookTarget {
        let (namespace, path) = ("b".to_owned(), String::new());
        WebhookTarget::Service(ServiceReference { name: name.to_owned(), namespace, path, port })
    }

    #[test]
    fn the_most_specific_user_is_used() {
        let credentials = Credentials::parse(KUBECONFIG, Path::new("/")).unwrap();
        let check = |target: &WebhookTarget, expect: &str| {
            let user = credentials.user(target).map_or("anonymous", |user| user.token.as_str());
            assert_eq!(user, expect, "{target:?}");
        };
        for (url, expect) in [
            ("https://exact.test:8443/path", "exact"),
            ("https://other.test:8443", "wildcard"),
            ("https://a.b.sub.test:8443", "closer"),
            ("https://EXACT.test:8443", "wildcard"),
            ("https://exact.test:8444/", "current"),
            ("https://no-port.test/", "no-port"),
            ("https://no-port.test:443/", "no-port"),
            ("https://no-port.test:444/", "current"),
            ("https://a.port.test?x", "no-port-wildcard"),
            ("https://[::1]/", "six"),
        ] {
            check(&WebhookTarget::Url(url.to_owned()), expect);
        }
        check(&service("a", 443), "service");
        check(&service("a", 8443), "current");

        let all = KUBECONFIG.replace("name: current, user", "name: \"*\", user");
        let all = Credentials::parse(&all, Path::new("/")).unwrap();
        assert_eq!(all.user(&service("a", 1)).unwrap().token, "current", "the user of all hosts");
        let nobody = KUBECONFIG.replace("current-context: here", "");
        let nobody = Credentials::parse(&nobody, Path::new("/")).unwrap();
        assert!(nobody.user(&service("a", 1)).is_none());
    }

    #[test]
    fn an_invalid_kubeconfig_is_rejected_with_an_explanation() {
        for (text, expect) in [
            ("", ""),
            ("users: null\nunknown: 1\n", ""),
            ("users: [{name: a}, {name: a}]", "users: there are two with the name \"a\""),
        ] {
            let error = Credentials::parse(text, Path::new("/")).err();
            assert_eq!(error.unwrap_or_default(), expect, "{text}");
        }
        let error = Credentials::parse("users:\n- name: [\n", Path::new("/")).unwrap_err();
        assert!(error.contains("line 2") || error.contains("line 3"), "{error}");
    }
}
