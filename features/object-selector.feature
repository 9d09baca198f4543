Feature: Object selector
  An object selector limits a webhook to objects with certain labels. Users choose the labels of the objects that they
  write, so an object selector is an opt-in or opt-out and does not enforce a policy.

  Source: Dynamic admission control, "Matching requests: objectSelector"; KEP-492, "Object selector"; apiserver
  pkg/admission/plugin/webhook/predicates/object/matcher.go

  Background:
    Given a ConfigMap "labeled" with the label "watched=yes" exists
    And a ConfigMap "plain" exists

  Rule: A new object is selected by its labels
    Scenario: A webhook is called for a new object with the label
      Given a validating webhook "guard" for configmaps
      And "guard" selects objects with the label "watched=yes"
      And "guard" denies the request with the message "seen"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: settings
          labels: {watched: "yes"}
        """
      Then the request is rejected with 400
      And the message contains "denied the request: seen"
      And "guard" is called once

    Scenario Outline: A webhook is not called for a new object <without the label>
      Given a validating webhook "guard" for configmaps
      And "guard" selects objects with the label "watched=yes"
      And "guard" denies the request with the message "seen"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: settings
          labels: <labels>
        """
      Then the request is admitted
      And "guard" is not called

      Examples:
        | without the label  | labels             |
        | without labels     | {}                 |
        | with another label | {unwatched: "yes"} |
        | with another value | {watched: "no"}    |

  Rule: An update is selected by the old or the new labels
    One match is enough, so removing the label does not bypass the webhook.

    Scenario: A webhook is called if an update removes the label
      Given a validating webhook "guard" for configmaps
      And "guard" selects objects with the label "watched=yes"
      And "guard" denies the request with the message "the label stays"
      When the label "watched" is removed from the configmap "labeled"
      Then the request is rejected with 400
      And the message contains "the label stays"
      And the first review sent to "guard" contains:
        """yaml
        request:
          operation: UPDATE
          object:
            metadata: {labels: null}
          oldObject:
            metadata:
              labels: {watched: "yes"}
        """

    Scenario: A webhook is called if an update adds the label
      Given a validating webhook "guard" for configmaps
      And "guard" selects objects with the label "watched=yes"
      When the label "watched=yes" is added to the configmap "plain"
      Then the request is admitted
      And "guard" is called once

    Scenario: A webhook is not called if neither object has the label
      Given a validating webhook "guard" for configmaps
      And "guard" selects objects with the label "watched=yes"
      And "guard" denies the request with the message "seen"
      When the label "team=blue" is added to the configmap "plain"
      Then the request is admitted
      And "guard" is not called

  Rule: A deletion is selected by the labels of the deleted object
    Scenario: A webhook is called if the deleted object has the label
      Given a validating webhook "guard" for configmaps
      And "guard" matches only the operation DELETE
      And "guard" selects objects with the label "watched=yes"
      And "guard" denies the request with the message "this stays"
      When the configmap "labeled" is deleted
      Then the request is rejected with 400
      And the configmap "labeled" exists
      And the first review sent to "guard" contains:
        """yaml
        request:
          operation: DELETE
          name: labeled
          object: null
          oldObject:
            metadata:
              labels: {watched: "yes"}
        """

    Scenario: A webhook is not called if the deleted object does not have the label
      Given a validating webhook "guard" for configmaps
      And "guard" matches only the operation DELETE
      And "guard" selects objects with the label "watched=yes"
      And "guard" denies the request with the message "this stays"
      When the configmap "plain" is deleted
      Then the request is admitted
      And the configmap "plain" does not exist
      And "guard" is not called

  Rule: The selector is evaluated after earlier webhooks changed the object
    Scenario: A webhook is called if an earlier webhook adds the label
      Given a mutating webhook "labels" for configmaps
      And "labels" adds the label "watched=yes"
      And a mutating webhook "later" for configmaps
      And "later" selects objects with the label "watched=yes"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: settings
        """
      Then the request is admitted
      And the webhooks are called in the order "labels, later"

    Scenario: A webhook is not called if an earlier webhook removes the label
      Given a mutating webhook "cleaner" for configmaps
      And "cleaner" removes the label "watched"
      And a mutating webhook "later" for configmaps
      And "later" selects objects with the label "watched=yes"
      And a validating webhook "guard" for configmaps
      And "guard" selects objects with the label "watched=yes"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: settings
          labels: {watched: "yes"}
        """
      Then the request is admitted
      And "cleaner" is called once
      And "later" is not called
      And "guard" is not called

    Scenario: A webhook is called if only the stored object has the label
      Given a mutating webhook "cleaner" for configmaps
      And "cleaner" removes the label "watched"
      And a mutating webhook "later" for configmaps
      And "later" selects objects with the label "watched=yes"
      When the label "team=blue" is added to the configmap "labeled"
      Then the request is admitted
      And the webhooks are called in the order "cleaner, later"
