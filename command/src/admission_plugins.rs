//! Parses the flags about in-tree plugins: `--enable-admission-plugins`, `--disable-admission-plugins`, `--policy-order`.

use harness::server::{AdmissionPlugins, PluginConfiguration, PolicyOrder, SelectionError};
use uuid::Uuid;

use crate::{Failure, screen};

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
    /// Apply admission policies, and the bindings of a policy, in the order of their names, or in a random order as
    /// kube-apiserver does. The same seed gives the same order; without a seed, a new one is chosen and printed
    #[arg(long, value_name = "name|random[:SEED]", value_parser = policy_order, default_value = "name")]
    policy_order: OrderFlag,
}

/// The value of `--policy-order`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum OrderFlag {
    #[default]
    Name,
    /// A random order with this seed, or with a new one.
    Random(Option<u64>),
}

fn policy_order(value: &str) -> Result<OrderFlag, String> {
    match value.split_once(':') {
        None if value == "name" => Ok(OrderFlag::Name),
        None if value == "random" => Ok(OrderFlag::Random(None)),
        Some(("random", seed)) => match seed.parse() {
            Ok(seed) => Ok(OrderFlag::Random(Some(seed))),
            Err(_) => Err(format!("the seed must be a number from 0 to {}", u64::MAX)),
        },
        _ => Err("expected name, random, or random:SEED".to_owned()),
    }
}

impl PluginFlags {
    /// Creates the flags from the values of `--enable-admission-plugins` and `--disable-admission-plugins`.
    pub(crate) fn new(enable: &[String], disable: &[String]) -> Self {
        Self { enable: enable.to_vec(), disable: disable.to_vec(), ..Self::default() }
    }

    /// Returns a flag that is set although it applies only to API servers that admit starts.
    pub(crate) fn for_own_servers(&self) -> Option<&'static str> {
        let flags = [
            ("--enable-admission-plugins", !self.enable.is_empty()),
            ("--disable-admission-plugins", !self.disable.is_empty()),
            ("--policy-order", self.policy_order != OrderFlag::Name),
        ];
        flags.into_iter().find_map(|(flag, is_set)| is_set.then_some(flag))
    }

    /// Adds the order of policies to the configuration of the plugins. Prints a new seed.
    pub(crate) fn configuration(&self, in_tree: PluginConfiguration) -> PluginConfiguration {
        let policy_order = match self.policy_order {
            OrderFlag::Name => PolicyOrder::Name,
            OrderFlag::Random(Some(seed)) => PolicyOrder::Random(seed),
            OrderFlag::Random(None) => {
                let order = PolicyOrder::Random(u64::from(Uuid::new_v4().as_fields().0));
                screen::status!("note: to apply policies in this order again, use --policy-order {order}");
                order
            }
        };
        PluginConfiguration { policy_order, ..in_tree }
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
    /// Returns a usage failure with kube-apiserver's message for an invalid name, and for `--policy-order`.
    pub(crate) fn for_kube_apiserver(&self) -> Result<Vec<String>, Failure> {
        if self.policy_order != OrderFlag::Name {
            let message = "--policy-order applies only to admit's API server: kube-apiserver always uses a random order";
            return Err(Failure::usage(message));
        }
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
    fn policy_order_may_have_a_seed() {
        assert_eq!(policy_order("name"), Ok(OrderFlag::Name));
        assert_eq!(policy_order("random"), Ok(OrderFlag::Random(None)));
        assert_eq!(policy_order("random:7"), Ok(OrderFlag::Random(Some(7))));
        assert_eq!(
            policy_order("random:"),
            Err("the seed must be a number from 0 to 18446744073709551615".to_owned())
        );
        for wrong in ["", "names", "random-7", "name:7"] {
            assert_eq!(
                policy_order(wrong),
                Err("expected name, random, or random:SEED".to_owned()),
                "{wrong}"
            );
        }
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
