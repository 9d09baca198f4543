Feature: Conversion webhooks
  A custom resource may be served in several versions that differ in more than their name. It is stored in one of them, and
  the definition names a webhook that converts objects from one version to another.

  Source: apiextensions-apiserver pkg/apiserver/conversion/webhook_converter.go

  Rule: An object is converted where another version than the stored one is asked for
    Scenario: What is stored is shown in the version of the request
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" that a webhook converts:
        """yaml
        convert: {moves: [{version: v2, from: /spec/size, to: /spec/replicas}]}
        """
      And this object exists:
        """yaml
        apiVersion: shop.example.com/v1
        kind: Widget
        metadata: {name: gear}
        spec: {size: 3}
        """
      And a validating webhook "careful" for widgets in shop.example.com/v2
      When this object is updated:
        """yaml
        apiVersion: shop.example.com/v2
        kind: Widget
        metadata: {name: gear}
        spec: {replicas: 4}
        """
      Then the request is admitted
      And the first review of "careful" contains:
        """yaml
        request:
          object: {apiVersion: shop.example.com/v2, spec: {replicas: 4}}
          oldObject: {apiVersion: shop.example.com/v2, spec: {replicas: 3}}
        """

    Scenario: It is converted for the storage and back for the answer
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" that a webhook converts:
        """yaml
        convert: {trail: example.com/converted}
        """
      When this object is created:
        """yaml
        apiVersion: shop.example.com/v2
        kind: Widget
        metadata: {name: gear}
        """
      Then the request is admitted
      And the object contains:
        """yaml
        apiVersion: shop.example.com/v2
        metadata: {annotations: {example.com/converted: "v2,v1,v2"}}
        """

    Scenario: An admission webhook of another version sees the converted object
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" that a webhook converts:
        """yaml
        convert: {moves: [{version: v2, from: /spec/size, to: /spec/replicas}]}
        """
      And a validating webhook "careful" for widgets in shop.example.com/v2
      When this object is created:
        """yaml
        apiVersion: shop.example.com/v1
        kind: Widget
        metadata: {name: gear}
        spec: {size: 3}
        """
      Then the request is admitted
      And the first review of "careful" contains:
        """yaml
        request:
          object: {apiVersion: shop.example.com/v2, spec: {replicas: 3}}
        """

  Rule: Nothing softens a conversion that fails
    Scenario: A conversion for the storage fails
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" that a webhook converts:
        """yaml
        convert: {fail: not today}
        """
      When this object is created:
        """yaml
        apiVersion: shop.example.com/v2
        kind: Widget
        metadata: {name: gear}
        """
      Then the request is refused with 500
      And the message contains "failed: not today"

    Scenario: A conversion for an admission webhook fails, whatever its failure policy
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" that a webhook converts:
        """yaml
        convert: {fail: not today}
        """
      And a validating webhook "careful" for widgets in shop.example.com/v2
      And "careful" has the failure policy Ignore
      When this object is created:
        """yaml
        apiVersion: shop.example.com/v1
        kind: Widget
        metadata: {name: gear}
        """
      Then the request is refused with 500 InternalError
      And the message contains "failed: not today"
      And "careful" is not called

    Scenario: The webhook is not there
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" that a webhook converts:
        """yaml
        bad-response: {status: 503}
        """
      When this object is created:
        """yaml
        apiVersion: shop.example.com/v2
        kind: Widget
        metadata: {name: gear}
        """
      Then the request is refused with 500
      And the message contains "the server is currently unable to handle the request"

  Rule: Of the metadata a conversion may change labels and annotations
    Scenario: Another name is refused
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" that a webhook converts:
        """yaml
        convert: {objects: {/metadata/name: other}}
        """
      When this object is created:
        """yaml
        apiVersion: shop.example.com/v2
        kind: Widget
        metadata: {name: gear}
        """
      Then the request is refused with 500
      And the message contains "must have the same name: gear != other"

    Scenario: Labels are changed, and finalizers are not
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" that a webhook converts:
        """yaml
        convert: {objects: {/metadata/labels: {team: blue}, /metadata/finalizers: [example.com/stays]}}
        """
      When this object is created:
        """yaml
        apiVersion: shop.example.com/v2
        kind: Widget
        metadata: {name: gear, labels: {team: red}}
        """
      Then the request is admitted
      And the object has the label "team=blue"
      And the object does not contain:
        """yaml
        metadata: {finalizers: [example.com/stays]}
        """
