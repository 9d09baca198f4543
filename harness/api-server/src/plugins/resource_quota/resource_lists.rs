//! Functions of lists of quantities by resource name.
//!
//! Source: apiserver pkg/quota/v1/resources.go.

use kubernetes_types::quantity::Quantity;

use crate::kinds::core::pod::pod_resources::{self, ResourceList};

/// Returns the sum of both lists.
pub(super) fn add(one: &ResourceList, other: &ResourceList) -> ResourceList {
    let mut sum = one.clone();
    pod_resources::add(&mut sum, other);
    sum
}

/// Returns the difference of both lists, with zero instead of negative quantities.
pub(super) fn subtract_with_non_negative_result(one: &ResourceList, other: &ResourceList) -> ResourceList {
    let difference = |name: &String, quantity: &Quantity| {
        let rest = match other.get(name) {
            Some(less) => quantity.minus(less).unwrap_or(Quantity::ZERO),
            None => quantity.clone(),
        };
        (name.clone(), if rest.sign() > 0 { rest } else { Quantity::ZERO })
    };
    one.iter().map(|(name, quantity)| difference(name, quantity)).collect()
}

/// Returns the quantities whose names `keeps` accepts.
pub(super) fn mask(list: &ResourceList, keeps: impl Fn(&str) -> bool) -> ResourceList {
    list.iter()
        .filter(|(name, _)| keeps(name))
        .map(|(name, quantity)| (name.clone(), quantity.clone()))
        .collect()
}

/// Returns the list as in kube-apiserver's errors: `cpu=1,memory=1Gi`.
///
/// Source: apiserver pkg/admission/plugin/resourcequota/controller.go, `prettyPrint`.
pub(super) fn pretty_print(list: &ResourceList) -> String {
    list.iter().map(|(name, quantity)| format!("{name}={quantity}")).collect::<Vec<_>>().join(",")
}
