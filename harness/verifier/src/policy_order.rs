//! Finds mutating policies whose result depends on the order in which they are applied.
//!
//! kube-apiserver applies mutating policies in random order. KEP-3962 names this as a risk.

use std::collections::BTreeSet;
use std::sync::Arc;

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::event::{Event, Round};
use kubernetes_admission::policies::{matching_everything, mutate_in_order};
use kubernetes_admission::policy::{Hook, MutatingHook, PoliciesChecked};
use kubernetes_api_server::ClusterFixture;
use serde_json::Value;

use super::comparison::{self, Difference, Order};
use super::policies::{Parsed, Policies};

/// The maximum number of policies that are applied in all orders.
const MAX_PERMUTED: usize = 6;

/// Two mutating policies whose order determines the result of a request.
#[derive(Debug)]
pub(super) struct OrderDependence {
    /// The names of the two policies in alphabetical order.
    pub(super) policies: [Arc<str>; 2],
    /// What is different if the second policy is applied immediately before the first instead of after it.
    pub(super) consequence: Consequence,
    /// The request.
    pub(super) request: Attributes,
}

/// The difference between the results of two orders.
#[derive(Debug)]
pub(super) enum Consequence {
    /// The objects differ. `expected` is the value if the first policy is applied first.
    Object(Vec<Difference>),
    /// One of the orders rejects the request.
    Rejection {
        /// Whether the request is rejected if the first policy is applied first.
        by_first: bool,
        /// The message of the response.
        message: String,
    },
}

/// The mutating policies without params, each with its bindings in the manifests, sorted by name.
///
/// A policy without bindings gets a binding that matches everything.
pub(super) fn hooks(policies: &Policies) -> Vec<MutatingHook> {
    let mut hooks: Vec<MutatingHook> = policies
        .objects
        .iter()
        .filter_map(|object| {
            let Some(Parsed::Mutating(policy)) = &object.parsed else { return None };
            if policy.definition.param_kind.is_some() {
                return None;
            }
            let mut bindings = policies.bindings_of(object).peekable();
            let bindings = if bindings.peek().is_none() {
                vec![Arc::new(matching_everything(&policy.definition, None))]
            } else {
                bindings.filter_map(|binding| Some(Arc::new(binding.binding()?.clone()))).collect()
            };
            Some(Hook { policy: Arc::clone(policy), bindings })
        })
        .collect();
    hooks.sort_by(|one, other| name(one).cmp(name(other)));
    hooks.dedup_by(|one, other| name(one) == name(other));
    hooks
}

/// Returns the pairs of policies whose order determines the result of a request, each with the first such request.
///
/// In each order, the policies that match the request are applied in both rounds. All orders are tried with the first
/// request that the same policies match, unless these are more than six. Otherwise, the orders contain each pair both
/// ways.
pub(super) fn order_dependences(
    hooks: &[MutatingHook],
    requests: impl Iterator<Item = Attributes>,
    cluster_fixture: &ClusterFixture,
) -> Vec<OrderDependence> {
    let mut found: Vec<OrderDependence> = Vec::new();
    let mut permuted: BTreeSet<Vec<Arc<str>>> = BTreeSet::new();
    for request in requests {
        let Some(applied) = Applied::new(hooks, &request, cluster_fixture) else { continue };
        let count = applied.matched.len();
        let swaps = if count <= MAX_PERMUTED && permuted.insert(applied.matched.clone()) {
            all_orders(count)
        } else {
            reversal(count)
        };
        let matching = hooks.iter().filter(|hook| applied.matched.contains(name(hook)));
        let mut order: Vec<MutatingHook> = matching.cloned().collect();
        let mut before = applied;
        for position in swaps {
            let Some([first, second]) = order.get_mut(position..position + 2) else { break };
            let pair = [&*first, &*second].map(|hook| Arc::clone(name(hook)));
            std::mem::swap(first, second);
            let Some(after) = Applied::new(&order, &request, cluster_fixture) else { break };
            let (policies, results) =
                if pair.is_sorted() { (pair, [&before, &after]) } else { (swapped(pair), [&after, &before]) };
            if !found.iter().any(|known| known.policies == policies)
                && let Some(consequence) = consequence(results, &request)
            {
                found.push(OrderDependence { policies, consequence, request: request.clone() });
            }
            before = after;
        }
    }
    found
}

/// The result of applying policies in one order.
struct Applied {
    /// The names of the policies that match the request.
    matched: Vec<Arc<str>>,
    /// The object, or the message of the response that rejects the request.
    outcome: Result<Value, String>,
}

impl Applied {
    /// Returns `None` if the result cannot be determined.
    fn new(hooks: &[MutatingHook], request: &Attributes, cluster_fixture: &ClusterFixture) -> Option<Self> {
        let mut run = cluster_fixture.evaluation(request.clone());
        let rejected = mutate_in_order(hooks, &mut run)?;
        let object = run.attributes().object.clone()?;
        let matched = run.record.events.iter().find_map(first_round)?.policies.iter();
        Some(Self {
            matched: matched.map(|policy| Arc::clone(&policy.policy)).collect(),
            outcome: rejected.map(|()| object).map_err(|status| status.message),
        })
    }
}

fn first_round(event: &Event) -> Option<&PoliciesChecked> {
    let Event::Policies(checked) = event else { return None };
    (checked.round == Round::First).then_some(checked)
}

/// Compares the results of two orders. Items of a list of objects may be in another order.
fn consequence([one, other]: [&Applied; 2], request: &Attributes) -> Option<Consequence> {
    match (&one.outcome, &other.outcome) {
        (Ok(one), Ok(other)) => {
            let differences = comparison::differences(one, other, &request.kind, Order::Free);
            (!differences.is_empty()).then_some(Consequence::Object(differences))
        }
        (Err(message), Ok(_)) => Some(Consequence::Rejection { by_first: true, message: message.clone() }),
        (Ok(_), Err(message)) => Some(Consequence::Rejection { by_first: false, message: message.clone() }),
        (Err(_), Err(_)) => None,
    }
}

/// Returns the adjacent swaps that lead through all orders of `count` items. Each is the position of its first item.
///
/// This is the Steinhaus–Johnson–Trotter algorithm: the last item moves through each order of the items before it.
fn all_orders(count: usize) -> Vec<usize> {
    let Some(moves) = count.checked_sub(1).filter(|moves| *moves > 0) else { return Vec::new() };
    let mut swaps: Vec<usize> = (0..moves).rev().collect();
    let mut is_first = true;
    for swap in all_orders(moves) {
        swaps.push(swap + usize::from(is_first));
        if is_first {
            swaps.extend(0..moves);
        } else {
            swaps.extend((0..moves).rev());
        }
        is_first = !is_first;
    }
    swaps
}

/// Returns the adjacent swaps that reverse the order of `count` items, which swap each pair once.
fn reversal(count: usize) -> Vec<usize> {
    (1..count).rev().flat_map(|end| 0..end).collect()
}

fn name(hook: &MutatingHook) -> &Arc<str> {
    &hook.policy.definition.name
}

fn swapped<T>([one, other]: [T; 2]) -> [T; 2] {
    [other, one]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(count: usize, swaps: &[usize]) -> BTreeSet<Vec<usize>> {
        let mut order: Vec<usize> = (0..count).collect();
        let mut orders = BTreeSet::from([order.clone()]);
        for position in swaps {
            order.swap(*position, position + 1);
            orders.insert(order.clone());
        }
        orders
    }

    #[test]
    fn all_orders_are_visited_once() {
        for (count, factorial) in [(0, 1), (1, 1), (2, 2), (3, 6), (4, 24), (6, 720)] {
            let swaps = all_orders(count);
            assert_eq!((swaps.len() + 1, orders(count, &swaps).len()), (factorial, factorial), "{count}");
        }
    }

    #[test]
    fn reversal_swaps_each_pair() {
        let swaps = reversal(7);
        assert_eq!(swaps.len(), 21);
        assert!(orders(7, &swaps).contains(&vec![6, 5, 4, 3, 2, 1, 0]));
    }
}
