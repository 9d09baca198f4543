//! Explains why webhooks of a scenario were not called, or not called again.

use std::fmt::Write as _;

use harness::event::{Mismatch, Round};
use serde_json::Value;

use super::api::Answer;
use super::failure::{HELP, NOTE, Outcome, StepFailure};
use super::parameter::Admission;
use super::world::World;
use crate::target::{RecordedCall, RecordedSkip};

/// A webhook of the scenario, with the names that identify it on the server.
pub(super) struct Identity<'a> {
    /// The name in the feature file.
    pub(super) short: &'a str,
    configuration: String,
    name: &'a str,
    /// The `reinvocationPolicy`, if it is set.
    policy: Option<&'a str>,
    /// The entry in the configuration, without the namespace selector of the scenario.
    pub(super) entry: &'a Value,
}

impl Identity<'_> {
    /// Returns whether the server skipped this webhook.
    pub(super) fn is_in(&self, skip: &RecordedSkip) -> bool {
        skip.webhook.name == self.name && skip.webhook.configuration == self.configuration
    }

    /// Returns whether this webhook received the call.
    pub(super) fn received(&self, call: &RecordedCall) -> bool {
        call.webhook == self.name && call.configuration == self.configuration
    }
}

impl World {
    /// Returns all webhooks of the scenario: the fakes, then the webhooks of loaded configurations.
    pub(super) fn identities(&self) -> Vec<Identity<'_>> {
        fn text<'a>(entry: &'a Value, field: &str) -> Option<&'a str> {
            entry.get(field).and_then(Value::as_str)
        }
        let fakes = self.webhooks.iter().filter(|webhook| webhook.loaded.is_none()).map(|webhook| Identity {
            short: &webhook.short,
            configuration: webhook.configuration(&self.names),
            name: text(&webhook.entry, "name").unwrap_or_default(),
            policy: text(&webhook.entry, "reinvocationPolicy"),
            entry: &webhook.entry,
        });
        let own = self.installation.own.iter().flat_map(|own| {
            let configuration = own.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            let entries = own.get("webhooks").and_then(Value::as_array).into_iter().flatten();
            entries.filter_map(move |entry| {
                let name = text(entry, "name")?;
                let changed = self.webhook(name).ok().map(|webhook| &webhook.entry);
                Some(Identity {
                    short: name,
                    configuration: self.names.loaded_configuration(configuration),
                    name,
                    policy: text(changed.unwrap_or(entry), "reinvocationPolicy"),
                    entry: changed.unwrap_or(entry),
                })
            })
        });
        fakes.chain(own).collect()
    }

    /// Returns the elements of `skips` that concern webhooks of the scenario.
    pub(super) fn of_scenario(&self, mut skips: Vec<RecordedSkip>) -> Vec<RecordedSkip> {
        let identities = self.identities();
        skips.retain(|skip| identities.iter().any(|it| it.is_in(skip)));
        skips
    }

    /// Returns the reason why the last request did not call a webhook in the first round, if the server skipped it.
    fn first_skip(&self, webhook: &Identity<'_>) -> Option<&RecordedSkip> {
        self.skips.iter().find(|skip| skip.round == Round::First && webhook.is_in(skip))
    }

    /// Returns a line for each webhook that the last request did not call, with the reason.
    ///
    /// Only admit's API server records the reasons.
    pub(super) fn not_called(&self) -> Vec<String> {
        let identities = self.identities();
        let reason = |it: &Identity<'_>| {
            let skip = self.first_skip(it)?;
            let is_called = self.calls_of(it.short).is_ok_and(|calls| !calls.is_empty());
            let reason = self.foreign_namespace(&skip.mismatch).unwrap_or_else(|| skip.reason.clone());
            (!is_called).then(|| format!("{}: not called: {reason}", it.short))
        };
        identities.iter().filter_map(reason).collect()
    }

    /// Fails if the webhook `short` was not called for a reason that is unrelated to its configuration.
    ///
    /// The reasons are that the request did not reach admission, or that `admit run` limited the webhook to other
    /// namespaces.
    pub(super) fn require_other_reason(&self, short: &str) -> Outcome {
        if self.missing_namespace().is_some() {
            let message = self.last.as_ref().map(Answer::message).unwrap_or_default();
            return Err(StepFailure::new(format!(
                "\"{short}\" was not called because the request failed before admission: {message}"
            )));
        }
        let identities = self.identities();
        let limit = identities
            .iter()
            .filter(|it| it.short == short)
            .find_map(|it| self.foreign_namespace(&self.first_skip(it)?.mismatch));
        match limit {
            Some(limit) => Err(StepFailure::new(format!(
                "this does not test the rules and selectors of \"{short}\": it was not called only because {limit}"
            ))),
            None => Ok(()),
        }
    }

    /// Returns the namespace of the last request if the request failed because the namespace does not exist.
    pub(super) fn missing_namespace(&self) -> Option<&str> {
        let message = self.last.as_ref()?.message();
        let name = message.strip_prefix("namespaces \"")?.strip_suffix("\" not found")?;
        self.last_path.contains("/namespaces/").then_some(name)
    }

    /// Explains that webhooks are limited to the namespaces of the scenario, if this caused a webhook not to be called.
    pub(super) fn foreign_namespace(&self, mismatch: &Mismatch) -> Option<String> {
        if *mismatch != Mismatch::NamespaceSelector {
            return None;
        }
        let rest = self.last_path.split('?').next()?.strip_prefix("/api/v1/namespaces");
        if let Some(rest) = rest
            && !rest.trim_start_matches('/').contains('/')
        {
            let step = "webhooks are also called for Namespace objects";
            let is_known = self.has_namespace(rest.trim_start_matches('/'));
            return (!self.matches_namespaces && !is_known).then(|| {
                format!("the webhooks of the scenario do not match Namespace objects: add the step `{step}`")
            });
        }
        let (_, rest) = self.last_path.split_once("/namespaces/")?;
        let name = rest.split(['/', '?']).next()?;
        (!self.has_namespace(name)).then(|| {
            let add = format!("add the step `webhooks are also called in the namespace \"{name}\"`");
            let help = match self.similar_namespace(name) {
                Some(similar) => format!("did you mean \"{similar}\"? Otherwise, {add}"),
                None => add,
            };
            format!("the namespace \"{name}\" is not part of the scenario: {help}")
        })
    }

    /// Returns whether the webhook `short` is a mutating webhook.
    fn is_mutating(&self, short: &str) -> bool {
        self.installation.has_own_mutating_webhook(short)
            || self.webhook(short).is_ok_and(|webhook| webhook.admission == Admission::Mutating)
    }

    /// Returns whether a mutating webhook rejected the last request, or whether its patch could not be applied.
    ///
    /// The error about a patch has status 500 and does not name the webhook. Validating webhooks are called after the
    /// reinvocation.
    fn is_rejected_by_mutation(&self, identities: &[Identity<'_>]) -> bool {
        let Some(answer) = self.last.as_ref().filter(|answer| !answer.is_success()) else { return false };
        let message = answer.message();
        let mut named =
            identities.iter().filter(|it| message.contains(&format!("\"{}\"", it.name))).peekable();
        match named.peek() {
            Some(_) => named.any(|it| self.is_mutating(it.short)),
            None => answer.code == 500,
        }
    }

    /// Explains that the webhooks and policies of the scenario do not apply to the namespace of the last request.
    ///
    /// Returns `None` on admit's API server, which records the reason for each webhook and policy.
    pub(super) fn outside_of_scenario(&self) -> Option<String> {
        if !self.skips.is_empty() || !self.policy_results.is_empty() || !self.calls().is_empty() {
            return None;
        }
        let reason = self.foreign_namespace(&Mismatch::NamespaceSelector)?;
        let has_any = !self.identities().is_empty() || !self.policies.is_empty();
        has_any.then(|| format!("the webhooks and policies of the scenario do not apply: {reason}"))
    }

    /// Explains why a mutating webhook was called `found` times, if a step expects more calls.
    pub(super) fn not_called_again(&self, short: &str, found: usize) -> Option<String> {
        let identities = self.identities();
        let it = identities.iter().find(|it| it.short == short)?;
        if found != 1 || !self.is_mutating(short) {
            return None;
        }
        if it.policy != Some("IfNeeded") {
            return Some(format!("{NOTE}{short}: not called again: its reinvocationPolicy is Never"));
        }
        if self.is_rejected_by_mutation(&identities) {
            return Some(format!(
                "{NOTE}{short}: not called again: the request was rejected in the first round"
            ));
        }
        let mut text =
            format!("{NOTE}{short}: not called again: no webhook changed the object after its call");
        let own = self.installation.own_webhooks().find(|(_, name)| *name == short);
        if let Some((configuration, _)) = own {
            let earlier = identities.iter().find(|other| {
                let fake = self.webhook(other.short);
                other.configuration < it.configuration
                    && fake.is_ok_and(|fake| fake.loaded.is_none() && fake.admission == Admission::Mutating)
            });
            if let Some(fake) = earlier {
                let step =
                    format!("\"{}\" is called after the configuration \"{configuration}\"", fake.short);
                let _ = write!(text, "\n{HELP}add the step `{step}`");
            }
        }
        Some(text)
    }
}
