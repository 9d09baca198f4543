//! The descriptions that `admit steps` prints.

use super::{
    StepHelp, apply, audit, connection, conversion, given, metrics, namespaces, outcome, request, service,
    then, when,
};

/// All steps, in the order of a scenario.
pub(crate) const STEPS: &[StepHelp] = &[
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
        "Closes the port, so that connections are refused",
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
    given(
        "this object exists:",
        "Creates an object before the webhooks are installed",
        r#"Given this object exists:
  """yaml
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings}
  """"#,
    ),
    given(
        "these objects exist:",
        "Creates objects before the webhooks are installed; a webhook configuration is renamed and limited to the scenario's namespace",
        r#"Given these objects exist:
  """yaml
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings}
  ---
  apiVersion: v1
  kind: Secret
  metadata: {name: password}
  """"#,
    ),
    given(
        "the objects in the file {string} exist",
        "Creates the objects in a file before the webhooks are installed; the path is relative to the feature file",
        r#"Given the objects in the file "webhook.yaml" exist"#,
    ),
    given(
        "the {word} {string} is being deleted",
        "Deletes an object that has a finalizer before the webhooks are installed",
        r#"Given the configmap "settings" is being deleted"#,
    ),
    given(
        "a ConfigMap {string} exists",
        "Creates an empty ConfigMap",
        r#"Given a ConfigMap "settings" exists"#,
    ),
    given(
        "a ConfigMap {string} with the label {string} exists",
        "Creates an empty ConfigMap with a label",
        r#"Given a ConfigMap "settings" with the label "team=blue" exists"#,
    ),
    given(
        "a LimitRange with the default CPU limit {string} exists",
        "Creates a LimitRange, so that the LimitRanger plugin sets this limit on containers without one",
        r#"Given a LimitRange with the default CPU limit "500m" exists"#,
    ),
    given(
        "the namespace has the label {string}",
        "Adds a label to the scenario's namespace",
        r#"Given the namespace has the label "environment=prod""#,
    ),
    namespaces::HELP,
    namespaces::OBJECTS,
    given(
        "a custom resource {string} with the versions {string}",
        "Creates a CustomResourceDefinition without a schema, in an API group of the scenario; the first version is stored",
        r#"Given a custom resource "widgets.shop.example.com" with the versions "v1, v2""#,
    ),
    conversion::HELP,
    conversion::FAULT,
    given("requests are dry runs", "Sends all later requests with dryRun=All", "Given requests are dry runs"),
    given(
        "the user {string} can {verbs} {word}",
        "Binds the user to a Role, or to a ClusterRole for a cluster-scoped resource",
        r#"Given the user "jane" can get and list pods"#,
    ),
    given(
        "requests are sent by the user {string}",
        "Impersonates this user in all later requests",
        r#"Given requests are sent by the user "jane""#,
    ),
    given(
        "requests are sent by the user {string} in the group {string}",
        "Impersonates this user and group in all later requests",
        r#"Given requests are sent by the user "jane" in the group "system:masters""#,
    ),
    when("a pod is created", r#"Creates the pod "web" with one container "web""#, "When a pod is created"),
    when(
        "a pod with the label {string} is created",
        r#"Creates the pod "web" with a label"#,
        r#"When a pod with the label "team=blue" is created"#,
    ),
    when(
        "this object is created:",
        "Sends POST",
        r#"When this object is created:
  """yaml
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings}
  """"#,
    ),
    when(
        "this object is updated:",
        "Sends PUT; a missing resourceVersion is filled in from the stored object",
        r#"When this object is updated:
  """yaml
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings}
  data: {color: blue}
  """"#,
    ),
    when(
        "the object in the file {string} is created",
        "Sends POST with the object in a file; the path is relative to the feature file",
        r#"When the object in the file "pod.yaml" is created"#,
    ),
    when(
        "the object in the file {string} is updated",
        "Sends PUT with the object in a file; a missing resourceVersion is filled in from the stored object",
        r#"When the object in the file "pod.yaml" is updated"#,
    ),
    when(
        "the {word} {string} is patched:",
        "Sends PATCH: a map is a JSON merge patch, a list is a JSON Patch",
        r#"When the configmap "settings" is patched:
  """yaml
  data: {color: blue}
  """"#,
    ),
    when(
        "the label {string} is added to the {word} {string}",
        "Sends PATCH to set a label",
        r#"When the label "team=blue" is added to the configmap "settings""#,
    ),
    when(
        "the label {string} is removed from the {word} {string}",
        "Sends PATCH to remove a label",
        r#"When the label "team" is removed from the configmap "settings""#,
    ),
    apply::STRATEGIC,
    apply::APPLY,
    apply::FORCE,
    when("the {word} {string} is deleted", "Sends DELETE", r#"When the configmap "settings" is deleted"#),
    request::DELETED_WITH,
    request::ALL_DELETED,
    when(
        "the {word} subresource of the {word} {string} is patched:",
        "Sends PATCH to a subresource",
        r#"When the scale subresource of the deployment "web" is patched:
  """yaml
  spec: {replicas: 3}
  """"#,
    ),
    when(
        "the {word} subresource of the {word} {string} is created:",
        "Sends POST to a subresource",
        r#"When the eviction subresource of the pod "web" is created:
  """yaml
  apiVersion: policy/v1
  kind: Eviction
  metadata: {name: web}
  """"#,
    ),
    request::SUBRESOURCE_UPDATED,
    connection::HELP,
    then("the request is admitted", "The request succeeded", "Then the request is admitted"),
    then(
        "the request is rejected with {int}",
        "The response has this code",
        "Then the request is rejected with 400",
    ),
    then(
        "the request is rejected with {int} {word}",
        "The response has this code and reason",
        "Then the request is rejected with 403 Forbidden",
    ),
    then(
        "the message is {string}",
        "The complete message of the rejection",
        r#"Then the message is 'admission webhook "policy.admit.example.com" denied the request: not today'"#,
    ),
    then(
        "the message contains {string}",
        "A part of the message of the rejection",
        r#"Then the message contains "not today""#,
    ),
    then(
        "the client receives the warning {string}",
        "The response has this Warning header",
        r#"Then the client receives the warning "ask the operators""#,
    ),
    then(
        "the client receives no warnings",
        "The response has no Warning header",
        "Then the client receives no warnings",
    ),
    then(
        "the object contains:",
        "The returned object contains all of this; list items are matched in order, null matches an absent field",
        r#"Then the object contains:
  """yaml
  metadata:
    labels: {team: blue}
  """"#,
    ),
    outcome::OBJECT_LACKS,
    then(
        "the container {string} has the CPU limit {string}",
        "A container of the returned pod has this limit",
        r#"Then the container "proxy" has the CPU limit "500m""#,
    ),
    then(
        "the object has the label {string}",
        "The returned object has this label",
        r#"Then the object has the label "team=blue""#,
    ),
    then(
        "the stored {word} {string} contains:",
        "A later GET returns an object that contains this",
        r#"Then the stored configmap "settings" contains:
  """yaml
  data: {color: blue}
  """"#,
    ),
    then(
        "the {word} {string} exists",
        "A later GET returns the object",
        r#"Then the configmap "settings" exists"#,
    ),
    then(
        "the {word} {string} does not exist",
        "A later GET returns 404",
        r#"Then the configmap "settings" does not exist"#,
    ),
    then(
        "{string} is called {times}",
        "The number of calls that the webhook received during the last request",
        r#"Then "sidecar" is called twice"#,
    ),
    then(
        "{string} is not called",
        "The webhook received no call during the last request",
        r#"Then "sidecar" is not called"#,
    ),
    then(
        "the webhooks are called in the order {string}",
        "All calls during the last request, in both rounds",
        r#"Then the webhooks are called in the order "labels, sidecar, labels""#,
    ),
    then(
        "the {ordinal} review sent to {string} contains:",
        "The AdmissionReview of this call contains all of this",
        r#"Then the second review sent to "sidecar" contains:
  """yaml
  request: {operation: UPDATE}
  """"#,
    ),
    then(
        "the {ordinal} review sent to {string} does not contain:",
        "The AdmissionReview of this call lacks at least one of these fields; the run prints which",
        r#"Then the second review sent to "sidecar" does not contain:
  """yaml
  request: {operation: UPDATE}
  """"#,
    ),
    then(
        "the {ordinal} review sent to {string} has the container {string}",
        "The object in the review has the container",
        r#"Then the second review sent to "labels" has the container "proxy""#,
    ),
    then(
        "the {ordinal} review sent to {string} does not have the container {string}",
        "The object in the review does not have the container",
        r#"Then the first review sent to "labels" does not have the container "proxy""#,
    ),
    then(
        "the audit log records that {string} changed the object in the {ordinal} round",
        "The annotation of the call has `mutated: true`",
        r#"Then the audit log records that "sidecar" changed the object in the first round"#,
    ),
    then(
        "the audit log records that {string} did not change the object in the {ordinal} round",
        "The annotation of the call has `mutated: false`",
        r#"Then the audit log records that "sidecar" did not change the object in the second round"#,
    ),
    then(
        "the audit log records that {string} was not called in the {ordinal} round",
        "The audit log has no annotation for a call of this mutating webhook in this round",
        r#"Then the audit log records that "sidecar" was not called in the second round"#,
    ),
    audit::PATCH,
    then(
        "the audit log records that {string} failed open",
        "The audit log has a failed-open annotation for this webhook",
        r#"Then the audit log records that "policy" failed open"#,
    ),
    then(
        "the audit log records that {string} failed open in the {ordinal} round",
        "The audit log has a failed-open annotation for this webhook and round",
        r#"Then the audit log records that "policy" failed open in the first round"#,
    ),
    then(
        "the audit log does not record that {string} failed open",
        "The audit log has no failed-open annotation for this webhook",
        r#"Then the audit log does not record that "policy" failed open"#,
    ),
    then(
        "the audit annotation {string} of {string} is {string}",
        "The webhook added this audit annotation",
        r#"Then the audit annotation "rule" of "policy" is "weekdays""#,
    ),
    metrics::COUNTS,
    then(
        "{string} is idempotent for every {word} in the corpus",
        "Check V01 passes for all built-in objects of a kind; admit calls the webhook itself on every target",
        r#"Then "sidecar" is idempotent for every pod in the corpus"#,
    ),
    then(
        "{string} is not idempotent",
        "Check V01 reports a finding for a built-in object that the rules match",
        r#"Then "sidecar" is not idempotent"#,
    ),
    then(
        "the check {word} passes for {string}",
        "A check of `admit verify --list` passes; admit calls the webhook itself on every target",
        r#"Then the check V02 passes for "sidecar""#,
    ),
    then(
        "the check {word} reports {string} for {string}",
        "A check of `admit verify --list` reports a finding that contains this text",
        r#"Then the check V01 reports "its own result" for "sidecar""#,
    ),
];
