//! Describes the steps that send a request.

use super::super::{StepHelp, annotation, apply, connection, request, when};

pub(super) const STEPS: &[StepHelp] = &[
    when("a pod is created", r#"Creates the pod "web" with one container "web""#, "When a pod is created"),
    when(
        "a pod with the label {string} is created",
        r#"Creates the pod "web" with a label"#,
        r#"When a pod with the label "team=blue" is created"#,
    ),
    annotation::POD,
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
    annotation::ADDED,
    annotation::REMOVED,
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
];
