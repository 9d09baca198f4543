//! Defines the order in which admission policies are applied.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// The order in which the policies of a type, and the bindings of a policy, are applied.
///
/// kube-apiserver's order is that of a Go map: it can change whenever a policy or binding changes.
///
/// Source: apiserver `pkg/admission/plugin/policy/generic/policy_source.go`, `calculatePolicyData`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "callers parse and print each order")]
pub enum PolicyOrder {
    /// The order of their names.
    #[default]
    Name,
    /// An order without a pattern that is the same for the same seed and the same names.
    Random(u64),
}

impl PolicyOrder {
    /// Sorts `items`, which are sorted by name.
    pub(crate) fn sort<T>(self, items: &mut [T], name: impl Fn(&T) -> &str) {
        if let Self::Random(seed) = self {
            items.sort_by_cached_key(|item| {
                Sha256::new_with_prefix(seed.to_le_bytes()).chain_update(name(item)).finalize()
            });
        }
    }
}

impl fmt::Display for PolicyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str("name"),
            Self::Random(seed) => write!(f, "random:{seed}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(order: PolicyOrder) -> Vec<&'static str> {
        let mut names = vec!["a", "b", "c", "d", "e"];
        order.sort(&mut names, |name| name);
        names
    }

    #[test]
    fn seed_determines_the_order() {
        assert_eq!(sorted(PolicyOrder::Name), ["a", "b", "c", "d", "e"]);
        let orders: std::collections::BTreeSet<Vec<&str>> =
            (0..200).map(|seed| sorted(PolicyOrder::Random(seed))).collect();
        assert!(orders.len() > 60, "{} of 120 orders", orders.len());
        assert_eq!(sorted(PolicyOrder::Random(7)), sorted(PolicyOrder::Random(7)));
    }
}
