//! Describes the steps about objects, namespaces, and users before the request.

use super::super::{StepHelp, conversion, given, namespaces};

pub(super) const STEPS: &[StepHelp] = &[
    given(
        "this object exists:",
        "Creates an object before the webhooks are installed; see `these objects exist:` for webhook configurations and admission policies",
        r#"Given this object exists:
  """yaml
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings}
  """"#,
    ),
    given(
        "these objects exist:",
        "Creates objects before the webhooks are installed; a webhook configuration, or an admission policy with its binding, is renamed and limited to the scenario's namespace",
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
        "Creates the objects in a file before the webhooks are installed, such as webhook configurations or admission policies with their bindings; the path is relative to the feature file",
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
];
