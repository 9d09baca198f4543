//! Defines the interactions of mutating webhooks.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The maximum number of fields of an interaction.
pub(super) const MAX_FIELDS: usize = 20;

/// What a mutating webhook does differently because another mutating webhook was called before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interaction {
    /// The webhook (`CONFIGURATION/WEBHOOK`) that depends on `other` or overwrites it.
    pub webhook: String,
    /// The webhook (`CONFIGURATION/WEBHOOK`) that was called before.
    pub other: String,
    /// The relation of `webhook` to `other`.
    pub relation: Relation,
    /// The fields that `webhook` changes differently, or the fields of `other` that it overwrites.
    ///
    /// The fields are patterns without list positions and keys, such as `spec.containers.image`. There are at most 20.
    pub fields: BTreeSet<String>,
    /// The number of objects with the interaction.
    pub objects: u64,
    /// The first object with the interaction, as its kind and `NAMESPACE/NAME`.
    pub example: String,
}

/// The relation of a webhook to another one that was called before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the other's call influences a webhook, or its result is overwritten"
)]
pub enum Relation {
    /// The webhook changes the object differently after the call of the other webhook.
    DependsOn,
    /// The webhook removes or replaces values that the other webhook added.
    Overwrites,
}

/// The interactions of all webhooks, in the order of their names.
#[derive(Debug, Default)]
pub(super) struct Interactions(BTreeMap<(String, String, Relation), Interaction>);

impl Interactions {
    /// Adds interactions. Those of the same webhooks and relation become one.
    pub(super) fn extend(&mut self, interactions: impl IntoIterator<Item = Interaction>) {
        for interaction in interactions {
            self.add(interaction);
        }
    }

    fn add(&mut self, interaction: Interaction) {
        let key = (interaction.webhook.clone(), interaction.other.clone(), interaction.relation);
        let Some(known) = self.0.get_mut(&key) else {
            self.0.insert(key, interaction);
            return;
        };
        known.objects += interaction.objects;
        known.fields.extend(interaction.fields);
        while known.fields.len() > MAX_FIELDS {
            known.fields.pop_last();
        }
    }

    /// Returns the interactions, sorted by the names of the webhooks.
    pub(super) fn into_list(self) -> Vec<Interaction> {
        self.0.into_values().collect()
    }
}
