//! Describes the steps about the response and stored objects.

use super::super::{StepHelp, annotation, container, outcome, then};

pub(super) const STEPS: &[StepHelp] = &[
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
    container::HELP[0],
    container::HELP[1],
    container::HELP[2],
    container::HELP[3],
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
    annotation::HAS,
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
];
