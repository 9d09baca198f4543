//! The selection of in-tree plugins: their names, defaults, and order.

use std::collections::BTreeSet;

use kubernetes_types::status::{Unsupported, aggregate};

/// The enabled plugins of a server.
///
/// The default is the same as in kube-apiserver without flags, except for `ServiceAccount`. Without a controller,
/// namespaces lack the service account `default`, and the plugin would reject every Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionPlugins {
    on: BTreeSet<&'static str>,
}

/// The reason why a selection of plugins is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "either kube-apiserver rejects it, or admit does not support it")]
pub enum SelectionError {
    /// kube-apiserver rejects the selection and exits with this message.
    #[error("{0}")]
    Refused(String),
    /// kube-apiserver accepts the selection, but admit does not support a plugin in it.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

/// Whether a plugin is enabled by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByDefault {
    On,
    Off,
}

/// The level of support for a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Support {
    /// The plugin runs, or rejects requests that it does not support.
    Supported,
    /// The plugin cannot be enabled.
    NotSupported,
}

use ByDefault::{Off, On};
use Support::{NotSupported, Supported};

/// All plugins of kube-apiserver, in the order in which they run.
///
/// Source: kubernetes pkg/kubeapiserver/options/plugins.go, `AllOrderedPlugins` and `DefaultOffAdmissionPlugins`.
/// Rule: CHN-10, LOAD-01.
const PLUGINS: [(&str, ByDefault, Support); 39] = [
    ("AlwaysAdmit", Off, Supported),
    ("NamespaceAutoProvision", Off, NotSupported),
    ("NamespaceLifecycle", On, Supported),
    ("NamespaceExists", Off, Supported),
    ("LimitPodHardAntiAffinityTopology", Off, Supported),
    ("LimitRanger", On, Supported),
    // kube-apiserver enables it by default.
    ("ServiceAccount", Off, Supported),
    ("NodeRestriction", Off, Supported),
    ("TaintNodesByCondition", On, Supported),
    ("AlwaysPullImages", Off, Supported),
    ("ImagePolicyWebhook", Off, NotSupported),
    ("PodSecurity", On, Supported),
    ("PodNodeSelector", Off, Supported),
    ("Priority", On, Supported),
    ("DefaultTolerationSeconds", On, Supported),
    ("PodTolerationRestriction", Off, NotSupported),
    ("EventRateLimit", Off, NotSupported),
    ("ExtendedResourceToleration", Off, NotSupported),
    ("DefaultStorageClass", On, Supported),
    ("StorageObjectInUseProtection", On, Supported),
    // Affects only an API that is off by default.
    ("PodGroupProtection", On, Supported),
    ("OwnerReferencesPermissionEnforcement", Off, NotSupported),
    ("PersistentVolumeClaimResize", On, Supported),
    ("RuntimeClass", On, Supported),
    ("CertificateApproval", On, Supported),
    ("CertificateSigning", On, Supported),
    ("ClusterTrustBundleAttest", On, Supported),
    ("CertificateSubjectRestriction", On, Supported),
    ("DefaultIngressClass", On, Supported),
    ("DenyServiceExternalIPs", Off, Supported),
    ("PodTopologyLabels", On, Supported),
    ("NodeDeclaredFeatureValidator", On, Supported),
    ("PodResizeValidator", On, Supported),
    ("MutatingAdmissionPolicy", On, Supported),
    ("MutatingAdmissionWebhook", On, Supported),
    ("ValidatingAdmissionPolicy", On, Supported),
    ("ValidatingAdmissionWebhook", On, Supported),
    ("ResourceQuota", On, Supported),
    // Rejects the objects that kube-apiserver creates at startup. With an empty storage, kube-apiserver exits
    // immediately.
    ("AlwaysDeny", Off, NotSupported),
];

impl Default for AdmissionPlugins {
    fn default() -> Self {
        let on = PLUGINS.iter().filter(|(_, default, _)| *default == On).map(|(name, ..)| *name);
        Self { on: on.collect() }
    }
}

impl AdmissionPlugins {
    /// Selects the default plugins and the plugins in `enable`, without the plugins in `disable`.
    ///
    /// The order of names does not matter.
    ///
    /// Source: apiserver pkg/server/options/admission.go, `Validate` and `enabledPluginNames`.
    /// Rule: CHN-11.
    ///
    /// # Errors
    /// Returns [`SelectionError`] for an unknown name, a name in both lists, or a plugin that admit does not support.
    pub fn select<T: AsRef<str>>(enable: &[T], disable: &[T]) -> Result<Self, SelectionError> {
        let check = Self::check_names(enable, disable);
        let named = |names: &[T], name: &str| names.iter().any(|named| named.as_ref() == name);
        check?;
        let mut on = BTreeSet::new();
        for (name, default, imitation) in PLUGINS {
            if named(enable, name) {
                if imitation == NotSupported {
                    let what = format!("the admission plugin {name}");
                    return Err(SelectionError::Unsupported(Unsupported { what }));
                }
                on.insert(name);
            } else if default == On && !named(disable, name) {
                on.insert(name);
            }
        }
        Ok(Self { on })
    }

    /// Checks whether kube-apiserver accepts these names.
    ///
    /// # Errors
    /// Returns [`SelectionError::Refused`] for an unknown name or a name in both lists.
    pub fn check_names<T: AsRef<str>>(enable: &[T], disable: &[T]) -> Result<(), SelectionError> {
        let mut errors = Vec::new();
        for (flag, names) in [("enable", enable), ("disable", disable)] {
            for name in names.iter().map(AsRef::as_ref) {
                if !PLUGINS.iter().any(|(known, ..)| *known == name) {
                    errors.push(format!("{flag}-admission-plugins plugin {name:?} is unknown"));
                }
            }
        }
        let disabled: BTreeSet<&str> = disable.iter().map(AsRef::as_ref).collect();
        let enabled: BTreeSet<&str> = enable.iter().map(AsRef::as_ref).collect();
        let both: Vec<&str> = enabled.intersection(&disabled).copied().collect();
        if !both.is_empty() {
            errors.push(format!(
                "[{}] in enable-admission-plugins and disable-admission-plugins overlapped",
                both.join(" ")
            ));
        }
        if errors.is_empty() { Ok(()) } else { Err(SelectionError::Refused(aggregate(errors))) }
    }

    /// Returns the names of all plugins, including those that admit does not support.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PLUGINS.iter().map(|(name, ..)| *name)
    }

    /// Returns whether the plugin with this name is enabled.
    pub fn has(&self, name: &str) -> bool {
        self.on.contains(name)
    }

    /// Returns the names of the enabled plugins in the order in which they run.
    pub fn in_order(&self) -> impl Iterator<Item = &'static str> {
        PLUGINS.iter().map(|(name, ..)| *name).filter(|name| self.has(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_enable_and_disable_plugins() {
        let select = |enable: &[&str], disable: &[&str]| AdmissionPlugins::select(enable, disable).unwrap();
        assert_eq!(select(&[], &[]), AdmissionPlugins::default());
        assert!(select(&[], &[]).has("LimitRanger"));
        assert!(!select(&[], &["LimitRanger"]).has("LimitRanger"));
        assert!(!select(&[], &[]).has("ServiceAccount"));
        assert!(select(&["ServiceAccount"], &[]).has("ServiceAccount"));
    }

    #[test]
    fn order_of_names_does_not_matter() {
        let one = AdmissionPlugins::select(&["ServiceAccount", "Priority", "AlwaysAdmit"], &[]).unwrap();
        let other = AdmissionPlugins::select(&["AlwaysAdmit", "ServiceAccount", "Priority"], &[]).unwrap();
        assert_eq!(one, other);
        let order: Vec<_> = one.in_order().collect();
        assert_eq!(order.first(), Some(&"AlwaysAdmit"));
        assert_eq!(order.last(), Some(&"ResourceQuota"));
    }

    #[track_caller]
    fn check(enable: &[&str], disable: &[&str], expect: &str) {
        assert_eq!(AdmissionPlugins::select(enable, disable).unwrap_err().to_string(), expect);
    }

    #[test]
    fn invalid_names_have_upstream_errors() {
        check(&["Foo"], &[], r#"enable-admission-plugins plugin "Foo" is unknown"#);
        check(
            &["Foo"],
            &["Bar"],
            r#"[enable-admission-plugins plugin "Foo" is unknown, disable-admission-plugins plugin "Bar" is unknown]"#,
        );
        check(
            &["Priority", "LimitRanger"],
            &["LimitRanger", "Priority"],
            "[LimitRanger Priority] in enable-admission-plugins and disable-admission-plugins overlapped",
        );
    }

    #[test]
    fn unsupported_plugin_cannot_be_enabled() {
        check(&["EventRateLimit"], &[], "unsupported: the admission plugin EventRateLimit");
        assert!(AdmissionPlugins::select(&["ResourceQuota"], &[]).is_ok());
    }
}
