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

  Rule: What the webhook answers is checked before it counts
    `admit fakes list conversion` tells all faults of conversion webhooks.

    Scenario Outline: With the fault <fault> an object cannot be stored
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" whose conversion webhook has the fault "<fault>"
      When this object is created:
        """yaml
        apiVersion: shop.example.com/v2
        kind: Widget
        metadata: {name: gear}
        """
      Then the request is refused with 500
      And the message contains "<words>"

      Examples: The review
        | fault                                | words                                      |
        | conversion-uid-missing               | expected response.uid=                     |
        | conversion-without-objects           | returned 0 objects, expected 1             |
        | conversion-with-too-many-objects     | returned 2 objects, expected 1             |
        | conversion-fails-without-a-message   | response.result.status was 'Failure'       |
        | conversion-fails-with-a-status       | unknown conversion                         |
        | admission-review-for-a-conversion    | is registered for version                  |
        | conversion-review-without-response   | no response provided                       |
        | conversion-answer-is-not-json        | json parse error                           |

      Examples: The objects
        | fault                                | words                                      |
        | converted-to-another-version         | invalid groupVersion                       |
        | converted-object-of-another-kind     | invalid kind                               |
        | conversion-changes-the-namespace     | must have the same namespace               |
        | conversion-changes-the-uid           | must have the same UID                     |
        | conversion-drops-the-metadata        | must have the same name                    |
        | converted-label-is-a-number          | must be a string                           |

      Examples: The connection and the status
        | fault                                | words                                      |
        | conversion-connection-closed         | EOF                                        |
        | conversion-certificate-expired       | certificate has expired                    |
        | conversion-authority-unknown         | unknown authority                          |
        | conversion-status-500                | an error on the server                     |
        | conversion-status-404                | could not find the requested resource      |

    Scenario: A field that a conversion loses is gone, and nothing says so
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" whose conversion webhook has the fault "conversion-loses-a-field"
      When this object is created:
        """yaml
        apiVersion: shop.example.com/v2
        kind: Widget
        metadata: {name: gear}
        spec: {size: 3}
        """
      Then the request is admitted
      And the object does not contain:
        """yaml
        spec: {size: 3}
        """
