Feature: Object selector
  A webhook can ask to be called only for objects with certain labels. Whoever writes an object chooses its labels, so
  that this is a convenience for willing users and no protection against others.

  Source: Dynamic admission control, "Matching requests: objectSelector"; KEP-492, "Object selector"; apiserver
  pkg/admission/plugin/webhook/predicates/object/matcher.go

  Background:
    Given a config map "labeled" with the label "watched=yes" exists
    And a config map "plain" exists

  Rule: A new object is judged by its labels
    Scenario: A new object with the label is seen
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
      Then the request is refused with 400
      And the message contains "denied the request: seen"
      And "guard" is called once

    Scenario Outline: A new object <without the label> passes by
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
        | without the label           | labels              |
        | without labels              | {}                  |
        | with another label          | {unwatched: "yes"}  |
        | with another value          | {watched: "no"}     |

  Rule: A change is judged by the labels before it and by those after it
    One of the two is enough, so that nobody escapes by taking the label away.

    Scenario: Taking the label away is seen
      Given a validating webhook "guard" for configmaps
      And "guard" selects objects with the label "watched=yes"
      And "guard" denies the request with the message "the label stays"
      When the configmap "labeled" loses the label "watched"
      Then the request is refused with 400
      And the message contains "the label stays"
      And the first review of "guard" contains:
        """yaml
        request:
          operation: UPDATE
          object:
            metadata: {labels: null}
          oldObject:
            metadata:
              labels: {watched: "yes"}
        """

    Scenario: Putting the label on is seen
      Given a validating webhook "guard" for configmaps
      And "guard" selects objects with the label "watched=yes"
      When the configmap "plain" gets the label "watched=yes"
      Then the request is admitted
      And "guard" is called once

    Scenario: A change of an object that never had the label passes by
      Given a validating webhook "guard" for configmaps
      And "guard" selects objects with the label "watched=yes"
      And "guard" denies the request with the message "seen"
      When the configmap "plain" gets the label "team=blue"
      Then the request is admitted
      And "guard" is not called

  Rule: A deletion is judged by the labels of what is deleted
    Scenario: Deleting an object with the label is seen
      Given a validating webhook "guard" for configmaps
      And "guard" is registered only for DELETE
      And "guard" selects objects with the label "watched=yes"
      And "guard" denies the request with the message "this stays"
      When the configmap "labeled" is deleted
      Then the request is refused with 400
      And the configmap "labeled" exists
      And the first review of "guard" contains:
        """yaml
        request:
          operation: DELETE
          name: labeled
          object: null
          oldObject:
            metadata:
              labels: {watched: "yes"}
        """

    Scenario: Deleting an object without the label passes by
      Given a validating webhook "guard" for configmaps
      And "guard" is registered only for DELETE
      And "guard" selects objects with the label "watched=yes"
      And "guard" denies the request with the message "this stays"
      When the configmap "plain" is deleted
      Then the request is admitted
      And the configmap "plain" does not exist
      And "guard" is not called

  Rule: A webhook is judged by the object as the webhooks before it left it
    Scenario: A label that an earlier webhook adds is enough
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

    Scenario: A label that an earlier webhook takes away is missing
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

    Scenario: A label that the stored object had is enough all the same
      Given a mutating webhook "cleaner" for configmaps
      And "cleaner" removes the label "watched"
      And a mutating webhook "later" for configmaps
      And "later" selects objects with the label "watched=yes"
      When the configmap "labeled" gets the label "team=blue"
      Then the request is admitted
      And the webhooks are called in the order "cleaner, later"
