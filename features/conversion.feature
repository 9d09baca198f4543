Feature: Conversion webhooks
  The versions of a custom resource can differ in more than their name. The API server stores objects in one version, and
  calls the conversion webhook in the CustomResourceDefinition to convert objects from one version to another.

  Source: apiextensions-apiserver pkg/apiserver/conversion/webhook_converter.go

  Rule: Objects are converted when the requested version is not the stored version
    Scenario: A stored object is returned in the version of the request
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" and this conversion webhook:
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
      And the first review sent to "careful" contains:
        """yaml
        request:
          object: {apiVersion: shop.example.com/v2, spec: {replicas: 4}}
          oldObject: {apiVersion: shop.example.com/v2, spec: {replicas: 3}}
        """

    Scenario: An object is converted for storage and back for the response
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" and this conversion webhook:
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

    Scenario: An admission webhook for another version receives the converted object
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" and this conversion webhook:
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
      And the first review sent to "careful" contains:
        """yaml
        request:
          object: {apiVersion: shop.example.com/v2, spec: {replicas: 3}}
        """

  Rule: A failed conversion always rejects the request
    Scenario: A failed conversion for storage rejects the request
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" and this conversion webhook:
        """yaml
        convert: {fail: not today}
        """
      When this object is created:
        """yaml
        apiVersion: shop.example.com/v2
        kind: Widget
        metadata: {name: gear}
        """
      Then the request is rejected with 500
      And the message contains "failed: not today"

    Scenario: A failed conversion for an admission webhook rejects the request, whatever the failure policy
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" and this conversion webhook:
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
      Then the request is rejected with 500 InternalError
      And the message contains "failed: not today"
      And "careful" is not called

    Scenario: An unreachable conversion webhook rejects the request
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" and this conversion webhook:
        """yaml
        bad-response: {status: 503}
        """
      When this object is created:
        """yaml
        apiVersion: shop.example.com/v2
        kind: Widget
        metadata: {name: gear}
        """
      Then the request is rejected with 500
      And the message contains "the server is currently unable to handle the request"

  Rule: A conversion may change labels and annotations but no other metadata
    Scenario: A conversion that changes the name is rejected
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" and this conversion webhook:
        """yaml
        convert: {objects: {/metadata/name: other}}
        """
      When this object is created:
        """yaml
        apiVersion: shop.example.com/v2
        kind: Widget
        metadata: {name: gear}
        """
      Then the request is rejected with 500
      And the message contains "must have the same name: gear != other"

    Scenario: Changed labels are kept and changed finalizers are ignored
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" and this conversion webhook:
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

  Rule: The API server validates the response of a conversion webhook
    `admit fakes list conversion` lists all faults of conversion webhooks.

    Scenario Outline: An object is not stored if the conversion webhook has the fault <fault>
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" and a conversion webhook with the fault "<fault>"
      When this object is created:
        """yaml
        apiVersion: shop.example.com/v2
        kind: Widget
        metadata: {name: gear}
        """
      Then the request is rejected with 500
      And the message contains "<words>"

      Examples: The ConversionReview
        | fault                              | words                                |
        | conversion-uid-missing             | expected response.uid=               |
        | conversion-without-objects         | returned 0 objects, expected 1       |
        | conversion-with-too-many-objects   | returned 2 objects, expected 1       |
        | conversion-fails-without-a-message | response.result.status was 'Failure' |
        | conversion-fails-with-a-status     | unknown conversion                   |
        | admission-review-for-a-conversion  | is registered for version            |
        | conversion-review-without-response | no response provided                 |
        | conversion-response-is-not-json      | json parse error                     |

      Examples: The converted objects
        | fault                            | words                        |
        | converted-to-another-version     | invalid groupVersion         |
        | converted-object-of-another-kind | invalid kind                 |
        | conversion-changes-the-namespace | must have the same namespace |
        | conversion-changes-the-uid       | must have the same UID       |
        | conversion-drops-the-metadata    | must have the same name      |
        | converted-label-is-a-number      | must be a string             |

      Examples: The connection and the HTTP status
        | fault                          | words                                 |
        | conversion-connection-closed   | EOF                                   |
        | conversion-certificate-expired | certificate has expired               |
        | conversion-authority-unknown   | unknown authority                     |
        | conversion-status-500          | an error on the server                |
        | conversion-status-404          | could not find the requested resource |

    Scenario: A field that a conversion drops is lost without an error
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2" and a conversion webhook with the fault "conversion-drops-a-field"
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
