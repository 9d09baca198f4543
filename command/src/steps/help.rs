//! What `admit steps` tells of every step.

use super::{
    StepHelp, audit, connection, conversion, given, metrics, namespaces, outcome, request, service, then,
    when,
};

/// Every step, in the order in which a scenario needs them.
pub(crate) const STEPS: &[StepHelp] = &[
    given(
        "a {admission} webhook {string} for {word}",
        "A webhook that allows every operation on a resource, whatever its group and version",
        r#"Given a mutating webhook "sidecar" for pods"#,
    ),
    given(
        "a {admission} webhook {string} for {word} in {word}",
        "A webhook for a resource in one group and version",
        r#"Given a validating webhook "policy" for deployments in apps/v1"#,
    ),
    given(
        "{string} is also registered for {word} in {word}",
        "Adds a rule: it is called for this resource too",
        r#"Given "policy" is also registered for statefulsets in apps/v1"#,
    ),
    given(
        "{string} is registered only for {operations}",
        "Its rules name these operations and no others",
        r#"Given "policy" is registered only for CREATE and DELETE"#,
    ),
    given("{string} may be reinvoked", "reinvocationPolicy: IfNeeded", r#"Given "sidecar" may be reinvoked"#),
    given(
        "{string} is never reinvoked",
        "reinvocationPolicy: Never, which is the default",
        r#"Given "sidecar" is never reinvoked"#,
    ),
    given(
        "{string} has the failure policy {word}",
        "failurePolicy: Fail, which is the default, or Ignore",
        r#"Given "policy" has the failure policy Ignore"#,
    ),
    given(
        "{string} has the match policy {word}",
        "matchPolicy: Equivalent, which is the default, or Exact",
        r#"Given "policy" has the match policy Exact"#,
    ),
    given(
        "{string} has a timeout of {int} second(s)",
        "timeoutSeconds: 1 to 30, by default 10",
        r#"Given "policy" has a timeout of 1 second"#,
    ),
    given(
        "{string} selects objects with the label {string}",
        "objectSelector: only objects with this label",
        r#"Given "policy" selects objects with the label "team=blue""#,
    ),
    given(
        "{string} has the match condition {string}:",
        "matchConditions: a CEL expression that must be true for it to be called; the same name again replaces it",
        r#"Given "policy" has the match condition "exclude-leases":
  """cel
  request.resource.group != 'coordination.k8s.io'
  """"#,
    ),
    given(
        "{string} is configured with:",
        "Merges YAML into its entry in the configuration",
        r#"Given "policy" is configured with:
  """yaml
  namespaceSelector: {matchLabels: {team: blue}}
  timeoutSeconds: 5
  """"#,
    ),
    given(
        "{string} changes nothing",
        "It allows, which is what a webhook does of which nothing is said",
        r#"Given "sidecar" changes nothing"#,
    ),
    given(
        "{string} behaves like this:",
        "A behavior as in a file of `admit fakes`",
        r#"Given "policy" behaves like this:
  """yaml
  deny: {code: 403, reason: Forbidden, message: not today}
  """"#,
    ),
    given(
        "{string} patches the object:",
        "It allows with these JSON Patch operations",
        r#"Given "sidecar" patches the object:
  """yaml
  - {op: add, path: /metadata/labels, value: {team: blue}}
  """"#,
    ),
    given(
        "{string} patches the object on its {ordinal} call:",
        "It allows with these JSON Patch operations on this call of the scenario",
        r#"Given "sidecar" patches the object on its second call:
  """yaml
  - {op: remove, path: /metadata/labels/team}
  """"#,
    ),
    given(
        "{string} adds the label {string}",
        "It patches objects that lack the label",
        r#"Given "labels" adds the label "team=blue""#,
    ),
    given(
        "{string} adds the label {string} on its {ordinal} call",
        "It patches an object that lacks the label, on this call of the scenario",
        r#"Given "labels" adds the label "team=blue" on its second call"#,
    ),
    given(
        "{string} removes the label {string}",
        "It patches objects that have the label",
        r#"Given "labels" removes the label "team""#,
    ),
    given(
        "{string} adds the container {string}",
        "It patches whatever has containers and lacks this one",
        r#"Given "sidecar" adds the container "proxy""#,
    ),
    given(
        "{string} gives every container the variable {string}",
        "It patches containers that lack the environment variable",
        r#"Given "sidecar" gives every container the variable "PROXY=on""#,
    ),
    given(
        "{string} denies the request with the message {string}",
        "It denies, without a code",
        r#"Given "policy" denies the request with the message "not today""#,
    ),
    given(
        "{string} denies the request with {int} {word} and the message {string}",
        "It denies with code, reason and message",
        r#"Given "policy" denies the request with 403 Forbidden and the message "not today""#,
    ),
    given("{string} never answers", "It takes the call and hangs", r#"Given "policy" never answers"#),
    given(
        "{string} never answers its {ordinal} call",
        "It hangs on this call of the scenario",
        r#"Given "policy" never answers its first call"#,
    ),
    given(
        "{string} answers with the HTTP status {int}",
        "It answers with this status and no review",
        r#"Given "policy" answers with the HTTP status 500"#,
    ),
    given(
        "{string} gives the bad response {string}",
        "It answers with something that is not a valid review: not-json, empty, no-response, wrong-uid, wrong-kind, wrong-version, …",
        r#"Given "policy" gives the bad response "wrong-uid""#,
    ),
    given(
        "{string} gives the bad response {string} on its {ordinal} call",
        "It answers with something that is not a valid review on this call of the scenario",
        r#"Given "policy" gives the bad response "no-response" on its first call"#,
    ),
    given(
        "{string} refuses connections",
        "Nobody listens on its port",
        r#"Given "policy" refuses connections"#,
    ),
    given(
        "{string} presents an untrusted certificate",
        "Another authority signed its certificate",
        r#"Given "policy" presents an untrusted certificate"#,
    ),
    given(
        "{string} presents a certificate with the defect {string}",
        "expired, not-yet-valid, wrong-name, common-name-only, unknown-issuer or no-server-auth",
        r#"Given "policy" presents a certificate with the defect "expired""#,
    ),
    given(
        "{string} has the fault {string}",
        "A fault of the catalog by its id or name, of whatever kind: `admit fakes list` and docs/reference/faults.md tell them all",
        r#"Given "policy" has the fault "E07-missing""#,
    ),
    service::HELP,
    given(
        "this object exists:",
        "Creates an object before any webhook is called",
        r#"Given this object exists:
  """yaml
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings}
  """"#,
    ),
    given(
        "these objects exist:",
        "Creates objects before any webhook is called; a webhook configuration gets a name and a namespace of its own",
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
        "The same from a file, whose path begins at the feature file",
        r#"Given the objects in the file "webhook.yaml" exist"#,
    ),
    given(
        "the {word} {string} is being deleted",
        "Deletes it before any webhook is called; a finalizer must keep it",
        r#"Given the configmap "settings" is being deleted"#,
    ),
    given(
        "a config map {string} exists",
        "Creates the smallest object",
        r#"Given a config map "settings" exists"#,
    ),
    given(
        "a config map {string} with the label {string} exists",
        "Creates the smallest object with a label",
        r#"Given a config map "settings" with the label "team=blue" exists"#,
    ),
    given(
        "a limit range that gives containers the default cpu limit {string}",
        "LimitRanger, a plugin of the server's own, gives every container without a limit this one",
        r#"Given a limit range that gives containers the default cpu limit "500m""#,
    ),
    given(
        "the namespace has the label {string}",
        "Labels the scenario's namespace",
        r#"Given the namespace has the label "environment=prod""#,
    ),
    namespaces::HELP,
    namespaces::OBJECTS,
    given(
        "a custom resource {string} with the versions {string}",
        "Defines a resource without a schema, in a group of the scenario's own; its first version is stored",
        r#"Given a custom resource "widgets.shop.example.com" with the versions "v1, v2""#,
    ),
    conversion::HELP,
    conversion::FAULT,
    given(
        "requests are dry runs",
        "From here on requests are sent with dryRun=All",
        "Given requests are dry runs",
    ),
    given(
        "the user {string} may {verbs} {word}",
        "Binds the user to a Role, or to a ClusterRole for a resource without namespaces",
        r#"Given the user "jane" may get and list pods"#,
    ),
    given(
        "requests are made by the user {string}",
        "From here on requests impersonate this user",
        r#"Given requests are made by the user "jane""#,
    ),
    given(
        "requests are made by the user {string} of the group {string}",
        "From here on requests impersonate this user and group",
        r#"Given requests are made by the user "jane" of the group "system:masters""#,
    ),
    when("a pod is created", r#"Creates the pod "web" with one container "web""#, "When a pod is created"),
    when(
        "a pod with the label {string} is created",
        r#"Creates the pod "web" with a label"#,
        r#"When a pod with the label "team=blue" is created"#,
    ),
    when(
        "this object is created:",
        "POST",
        r#"When this object is created:
  """yaml
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings}
  """"#,
    ),
    when(
        "this object is updated:",
        "PUT; without a resourceVersion it is that of what is stored",
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
        "POST of an object in a file, whose path begins at the feature file",
        r#"When the object in the file "pod.yaml" is created"#,
    ),
    when(
        "the object in the file {string} is updated",
        "PUT of an object in a file; without a resourceVersion it is that of what is stored",
        r#"When the object in the file "pod.yaml" is updated"#,
    ),
    when(
        "the {word} {string} is patched:",
        "PATCH: a map is a merge patch, a list is a JSON Patch",
        r#"When the configmap "settings" is patched:
  """yaml
  data: {color: blue}
  """"#,
    ),
    when(
        "the {word} {string} gets the label {string}",
        "PATCH that sets a label",
        r#"When the configmap "settings" gets the label "team=blue""#,
    ),
    when(
        "the {word} {string} loses the label {string}",
        "PATCH that removes a label",
        r#"When the configmap "settings" loses the label "team""#,
    ),
    when("the {word} {string} is deleted", "DELETE", r#"When the configmap "settings" is deleted"#),
    request::DELETED_WITH,
    request::ALL_DELETED,
    when(
        "the {word} of the {word} {string} is patched:",
        "PATCH of a subresource",
        r#"When the scale of the deployment "web" is patched:
  """yaml
  spec: {replicas: 3}
  """"#,
    ),
    when(
        "the {word} of the {word} {string} is created:",
        "POST to a subresource",
        r#"When the eviction of the pod "web" is created:
  """yaml
  apiVersion: policy/v1
  kind: Eviction
  metadata: {name: web}
  """"#,
    ),
    request::SUBRESOURCE_UPDATED,
    connection::HELP,
    then("the request is admitted", "The server did what it was asked to do", "Then the request is admitted"),
    then(
        "the request is refused with {int}",
        "The code of the answer",
        "Then the request is refused with 400",
    ),
    then(
        "the request is refused with {int} {word}",
        "The code and the reason of the answer",
        "Then the request is refused with 403 Forbidden",
    ),
    then(
        "the message is {string}",
        "The whole message of the refusal",
        r#"Then the message is 'admission webhook "policy.admit.example.com" denied the request: not today'"#,
    ),
    then(
        "the message contains {string}",
        "A part of the message of the refusal",
        r#"Then the message contains "not today""#,
    ),
    then(
        "the client is warned {string}",
        "The answer has this warning",
        r#"Then the client is warned "ask the operators""#,
    ),
    then("the client is not warned", "The answer has no warnings", "Then the client is not warned"),
    then(
        "the object contains:",
        "The object in the answer has all of this; list items are found in order, null is what is not there",
        r#"Then the object contains:
  """yaml
  metadata:
    labels: {team: blue}
  """"#,
    ),
    outcome::OBJECT_LACKS,
    then(
        "the container {string} has the cpu limit {string}",
        "A container of the pod in the answer",
        r#"Then the container "proxy" has the cpu limit "500m""#,
    ),
    then(
        "the object has the label {string}",
        "The object in the answer",
        r#"Then the object has the label "team=blue""#,
    ),
    then(
        "the stored {word} {string} contains:",
        "What the server returns to a later GET",
        r#"Then the stored configmap "settings" contains:
  """yaml
  data: {color: blue}
  """"#,
    ),
    then("the {word} {string} exists", "A later GET finds it", r#"Then the configmap "settings" exists"#),
    then(
        "the {word} {string} does not exist",
        "A later GET does not find it",
        r#"Then the configmap "settings" does not exist"#,
    ),
    then(
        "{string} is called {times}",
        "How many calls it received during the last request",
        r#"Then "sidecar" is called twice"#,
    ),
    then(
        "{string} is not called",
        "It received no call during the last request",
        r#"Then "sidecar" is not called"#,
    ),
    then(
        "the webhooks are called in the order {string}",
        "All calls during the last request, of both rounds",
        r#"Then the webhooks are called in the order "labels, sidecar, labels""#,
    ),
    then(
        "the {ordinal} review of {string} contains:",
        "The AdmissionReview of a call has all of this",
        r#"Then the second review of "sidecar" contains:
  """yaml
  request: {operation: UPDATE}
  """"#,
    ),
    then(
        "the {ordinal} review of {string} does not contain:",
        "The AdmissionReview of a call lacks at least one of these fields; of several the run says which",
        r#"Then the second review of "sidecar" does not contain:
  """yaml
  request: {operation: UPDATE}
  """"#,
    ),
    then(
        "the {ordinal} review of {string} shows the container {string}",
        "The object in the review has the container",
        r#"Then the second review of "labels" shows the container "proxy""#,
    ),
    then(
        "the {ordinal} review of {string} does not show the container {string}",
        "The object in the review lacks the container",
        r#"Then the first review of "labels" does not show the container "proxy""#,
    ),
    then(
        "the audit log says that {string} changed the object in the {ordinal} round",
        "`mutated` is true in the annotation of the call",
        r#"Then the audit log says that "sidecar" changed the object in the first round"#,
    ),
    then(
        "the audit log says that {string} did not change the object in the {ordinal} round",
        "`mutated` is false in the annotation of the call",
        r#"Then the audit log says that "sidecar" did not change the object in the second round"#,
    ),
    then(
        "the audit log says that {string} was not called in the {ordinal} round",
        "There is no annotation of such a call of a mutating webhook",
        r#"Then the audit log says that "sidecar" was not called in the second round"#,
    ),
    audit::PATCH,
    then(
        "the audit log says that {string} failed open",
        "There is an annotation that it failed open",
        r#"Then the audit log says that "policy" failed open"#,
    ),
    then(
        "the audit log says that {string} failed open in the {ordinal} round",
        "There is an annotation that it failed open in this round",
        r#"Then the audit log says that "policy" failed open in the first round"#,
    ),
    then(
        "the audit log does not say that {string} failed open",
        "There is no annotation that it failed open",
        r#"Then the audit log does not say that "policy" failed open"#,
    ),
    then(
        "the audit annotation {string} of {string} is {string}",
        "What the webhook itself had written into the audit log",
        r#"Then the audit annotation "rule" of "policy" is "weekdays""#,
    ),
    metrics::COUNTS,
    then(
        "{string} is idempotent for every {word} in the corpus",
        "Check V01, asked by admit's own dispatcher on every target, for the built-in objects of a kind",
        r#"Then "sidecar" is idempotent for every pod in the corpus"#,
    ),
    then(
        "{string} is not idempotent",
        "Check V01 finds something, for any built-in object that its rules match",
        r#"Then "sidecar" is not idempotent"#,
    ),
    then(
        "the check {word} finds nothing for {string}",
        "A check of `admit verify --list`, asked by admit's own dispatcher on every target, looked and all is well",
        r#"Then the check V02 finds nothing for "sidecar""#,
    ),
    then(
        "the check {word} finds {string} for {string}",
        "A check of `admit verify --list`, asked by admit's own dispatcher on every target, finds what says this",
        r#"Then the check V01 finds "its own result" for "sidecar""#,
    ),
];
