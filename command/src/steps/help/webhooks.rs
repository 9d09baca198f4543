//! Describes the steps about the webhooks of a scenario.

use super::super::{StepHelp, annotation, given, order, service};

pub(super) const STEPS: &[StepHelp] = &[
    given(
        "a {admission} webhook {string} for {word}",
        "Defines a webhook that matches all operations on a resource in all groups and versions, and allows them",
        r#"Given a mutating webhook "sidecar" for pods"#,
    ),
    given(
        "a {admission} webhook {string} for {word} in {word}",
        "Defines a webhook that matches a resource in one group and version",
        r#"Given a validating webhook "policy" for deployments in apps/v1"#,
    ),
    given(
        "{string} also matches {word} in {word}",
        "Adds a rule for another resource",
        r#"Given "policy" also matches statefulsets in apps/v1"#,
    ),
    given(
        "{string} matches only the operation(s) {operations}",
        "Limits all rules of the webhook to these operations",
        r#"Given "policy" matches only the operations CREATE and DELETE"#,
    ),
    given(
        "{string} has the reinvocation policy {word}",
        "Sets reinvocationPolicy: Never (the default) or IfNeeded",
        r#"Given "sidecar" has the reinvocation policy IfNeeded"#,
    ),
    given(
        "{string} has the failure policy {word}",
        "Sets failurePolicy: Fail (the default) or Ignore",
        r#"Given "policy" has the failure policy Ignore"#,
    ),
    given(
        "{string} has the match policy {word}",
        "Sets matchPolicy: Equivalent (the default) or Exact",
        r#"Given "policy" has the match policy Exact"#,
    ),
    given(
        "{string} has a timeout of {int} second(s)",
        "Sets timeoutSeconds: 1 to 30 (default 10)",
        r#"Given "policy" has a timeout of 1 second"#,
    ),
    given(
        "{string} selects objects with the label {string}",
        "Sets objectSelector to this label",
        r#"Given "policy" selects objects with the label "team=blue""#,
    ),
    given(
        "{string} has the match condition {string}:",
        "Adds a match condition, a CEL expression; the same name again replaces the expression",
        r#"Given "policy" has the match condition "exclude-leases":
  """cel
  request.resource.group != 'coordination.k8s.io'
  """"#,
    ),
    given(
        "{string} is configured with:",
        "Merges YAML into the webhook's entry in the configuration",
        r#"Given "policy" is configured with:
  """yaml
  namespaceSelector: {matchLabels: {team: blue}}
  timeoutSeconds: 5
  """"#,
    ),
    given(
        "{string} allows the request",
        "Allows the request (the default)",
        r#"Given "sidecar" allows the request"#,
    ),
    given(
        "{string} behaves like this:",
        "Sets the behavior, as in a fakes file of `admit fakes`",
        r#"Given "policy" behaves like this:
  """yaml
  deny: {code: 403, reason: Forbidden, message: not today}
  """"#,
    ),
    given(
        "{string} patches the object:",
        "Allows the request with these JSON Patch operations",
        r#"Given "sidecar" patches the object:
  """yaml
  - {op: add, path: /metadata/labels, value: {team: blue}}
  """"#,
    ),
    given(
        "{string} patches the object on its {ordinal} call:",
        "Allows the request with these JSON Patch operations on one call of the scenario",
        r#"Given "sidecar" patches the object on its second call:
  """yaml
  - {op: remove, path: /metadata/labels/team}
  """"#,
    ),
    given(
        "{string} adds the label {string}",
        "Adds the label to objects that do not have it",
        r#"Given "labels" adds the label "team=blue""#,
    ),
    given(
        "{string} adds the label {string} on its {ordinal} call",
        "Adds the label on one call of the scenario, if the object does not have it",
        r#"Given "labels" adds the label "team=blue" on its second call"#,
    ),
    given(
        "{string} removes the label {string}",
        "Removes the label from objects that have it",
        r#"Given "labels" removes the label "team""#,
    ),
    annotation::ADDS,
    annotation::ADDS_ON_CALL,
    annotation::REMOVES,
    given(
        "{string} adds the container {string}",
        "Adds the container to pods and pod templates that do not have it",
        r#"Given "sidecar" adds the container "proxy""#,
    ),
    given(
        "{string} sets the environment variable {string} in every container",
        "Adds the environment variable to containers that do not have it",
        r#"Given "sidecar" sets the environment variable "PROXY=on" in every container"#,
    ),
    given(
        "{string} denies the request with the message {string}",
        "Denies the request with this message and without a code",
        r#"Given "policy" denies the request with the message "not today""#,
    ),
    given(
        "{string} denies the request with {int} {word} and the message {string}",
        "Denies the request with this code, reason, and message",
        r#"Given "policy" denies the request with 403 Forbidden and the message "not today""#,
    ),
    given("{string} never responds", "Accepts the call and hangs", r#"Given "policy" never responds"#),
    given(
        "{string} never responds to its {ordinal} call",
        "Hangs on one call of the scenario",
        r#"Given "policy" never responds to its first call"#,
    ),
    given(
        "{string} responds with the HTTP status {int}",
        "Responds with this status and without a review",
        r#"Given "policy" responds with the HTTP status 500"#,
    ),
    given(
        "{string} returns the bad response {string}",
        "Responds with an invalid review: not-json, empty, no-response, wrong-uid, wrong-kind, wrong-version, …",
        r#"Given "policy" returns the bad response "wrong-uid""#,
    ),
    given(
        "{string} returns the bad response {string} on its {ordinal} call",
        "Responds with an invalid review on one call of the scenario",
        r#"Given "policy" returns the bad response "no-response" on its first call"#,
    ),
    given(
        "{string} refuses connections",
        "Closes the port, so that connections are refused; if the webhook is in a loaded configuration, a fake replaces it",
        r#"Given "policy" refuses connections"#,
    ),
    given(
        "{string} presents a certificate with the defect {string}",
        "Uses an invalid certificate: expired, not-yet-valid, wrong-name, common-name-only, unknown-issuer, or no-server-auth",
        r#"Given "policy" presents a certificate with the defect "expired""#,
    ),
    given(
        "{string} has the fault {string}",
        "Applies a fault of the catalog by its ID or name; `admit fakes list` lists all faults",
        r#"Given "policy" has the fault "E07-missing""#,
    ),
    service::HELP,
    order::BEFORE,
    order::AFTER,
];
