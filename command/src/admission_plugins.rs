//! Parses `--enable-admission-plugins` and `--disable-admission-plugins`, which select the in-tree plugins to run.

use harness::server::{AdmissionPlugins, SelectionError};

use crate::Failure;

/// The plugin that calls mutating webhooks.
pub(crate) const MUTATING: &str = "MutatingAdmissionWebhook";
/// The plugin that calls validating webhooks.
pub(crate) const VALIDATING: &str = "ValidatingAdmissionWebhook";

/// The plugin that is disabled by default: without a controller that creates service accounts, it rejects every pod.
const SERVICE_ACCOUNT: &str = "ServiceAccount";

/// The options that select admission plugins, for every command that starts an API server.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Admission plugins")]
pub(crate) struct PluginFlags {
    /// Enable these in-tree admission plugins in addition to the default ones, as in kube-apiserver; can be repeated.
    /// Their order does not matter. Unlike in kube-apiserver, `ServiceAccount` is disabled by default
    #[arg(long = "enable-admission-plugins", value_name = "NAME,NAME…")]
    enable: Vec<String>,
    /// Disable these default admission plugins
    #[arg(long = "disable-admission-plugins", value_name = "NAME,NAME…")]
    disable: Vec<String>,
}

impl PluginFlags {
    /// Creates the flags from the values of `--enable-admission-plugins` and `--disable-admission-plugins`.
    pub(crate) fn new(enable: &[String], disable: &[String]) -> Self {
        Self { enable: enable.to_vec(), disable: disable.to_vec() }
    }

    /// Returns whether neither flag is set.
    pub(crate) fn is_empty(&self) -> bool {
        self.enable.is_empty() && self.disable.is_empty()
    }

    /// Selects the plugins of admit's API server according to the flags.
    ///
    /// # Errors
    /// Returns a usage failure with kube-apiserver's message, or [`Failure::unsupported`] for a plugin that admit does
    /// not support.
    pub(crate) fn selection(&self) -> Result<AdmissionPlugins, Failure> {
        AdmissionPlugins::select(&names(&self.enable), &names(&self.disable)).map_err(|error| match error {
            SelectionError::Unsupported(unsupported) => Failure::unsupported(format!(
                "--enable-admission-plugins: admit does not have {}",
                unsupported.what
            )),
            SelectionError::Refused(why) => Failure::usage(why),
        })
    }

    /// Selects the plugins for `admit assets`, where `ServiceAccount` is enabled by default as in kube-apiserver.
    ///
    /// # Errors
    /// Returns the errors of [`PluginFlags::selection`].
    pub(crate) fn for_assets(&self) -> Result<AdmissionPlugins, Failure> {
        let mut flags = self.clone();
        if !names(&self.disable).contains(&SERVICE_ACCOUNT) && !names(&self.enable).contains(&SERVICE_ACCOUNT)
        {
            flags.enable.push(SERVICE_ACCOUNT.to_owned());
        }
        flags.selection()
    }

    /// Returns the flags for a real kube-apiserver that runs the same plugins.
    ///
    /// # Errors
    /// Returns a usage failure with kube-apiserver's message for an invalid name.
    pub(crate) fn for_kube_apiserver(&self) -> Result<Vec<String>, Failure> {
        let (enable, mut disable) = (names(&self.enable), names(&self.disable));
        AdmissionPlugins::check_names(&enable, &disable).map_err(Failure::usage)?;
        if !enable.contains(&SERVICE_ACCOUNT) {
            disable.push(SERVICE_ACCOUNT);
        }
        let flag = |name: &str, names: &[&str]| {
            (!names.is_empty()).then(|| format!("--{name}-admission-plugins={}", names.join(",")))
        };
        Ok([flag("enable", &enable), flag("disable", &disable)].into_iter().flatten().collect())
    }
}

/// Returns the comma-separated names in the values of a flag; ignores empty values.
fn names(values: &[String]) -> Vec<&str> {
    values.iter().filter(|value| !value.is_empty()).flat_map(|value| value.split(',')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(enable: &[&str], disable: &[&str]) -> PluginFlags {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        PluginFlags::new(&owned(enable), &owned(disable))
    }

    #[test]
    fn a_value_may_contain_several_names() {
        let selection = flags(&["", "AlwaysAdmit,ServiceAccount"], &["Priority"]).selection().unwrap();
        assert!(
            selection.has("ServiceAccount") && selection.has("AlwaysAdmit") && !selection.has("Priority")
        );
    }

    #[test]
    fn kube_apiserver_enables_service_account_only_on_request() {
        for (enable, disable, expect) in [
            (&[][..], &[][..], vec!["--disable-admission-plugins=ServiceAccount"]),
            (&["ServiceAccount"], &[], vec!["--enable-admission-plugins=ServiceAccount"]),
            (
                &["AlwaysAdmit,PodSecurity"],
                &["Priority"],
                vec![
                    "--enable-admission-plugins=AlwaysAdmit,PodSecurity",
                    "--disable-admission-plugins=Priority,ServiceAccount",
                ],
            ),
        ] {
            assert_eq!(flags(enable, disable).for_kube_apiserver().unwrap(), expect);
        }
    }

    #[test]
    fn errors_are_in_the_servers_words() {
        let message = flags(&["Foo"], &[]).selection().unwrap_err().to_string();
        assert_eq!(message, r#"enable-admission-plugins plugin "Foo" is unknown"#);
        let message = flags(&["EventRateLimit"], &[]).selection().unwrap_err().to_string();
        assert_eq!(
            message,
            "--enable-admission-plugins: admit does not have the admission plugin EventRateLimit"
        );
    }
}
