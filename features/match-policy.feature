Feature: Match policy
  A resource is often served in several versions. A webhook's rules list some of them. The match policy decides whether the
  webhook is also called for requests that use another version.

  Source: Dynamic admission control, "Matching requests: matchPolicy"; apiserver
  pkg/admission/plugin/webhook/generic/webhook.go

  Rule: With the match policy Exact, a webhook is called only for the versions in its rules
    Scenario: Another version of a built-in resource does not match
      Given a validating webhook "strict" for horizontalpodautoscalers in autoscaling/v2
      And "strict" has the match policy Exact
      And "strict" denies the request with the message "not this one"
      When this object is created:
        """yaml
        apiVersion: autoscaling/v1
        kind: HorizontalPodAutoscaler
        metadata: {name: web}
        spec:
          maxReplicas: 3
          scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
        """
      Then the request is admitted
      And "strict" is not called

    Scenario: The version in the rule matches
      Given a validating webhook "strict" for horizontalpodautoscalers in autoscaling/v1
      And "strict" has the match policy Exact
      And "strict" denies the request with the message "not this one"
      When this object is created:
        """yaml
        apiVersion: autoscaling/v1
        kind: HorizontalPodAutoscaler
        metadata: {name: web}
        spec:
          maxReplicas: 3
          scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
        """
      Then the request is rejected with 400
      And the message is 'admission webhook "strict.admit.example.com" denied the request: not this one'
      And "strict" is called once

    Scenario: Another version of a custom resource does not match
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2"
      And a mutating webhook "strict" for widgets in shop.example.com/v1
      And "strict" has the match policy Exact
      When this object is created:
        """yaml
        apiVersion: shop.example.com/v2
        kind: Widget
        metadata: {name: gear}
        """
      Then the request is admitted
      And "strict" is not called

  Rule: With the match policy Equivalent, a webhook is called for every version and receives a version from its rules
    Source: Dynamic admission control, "Matching requests: matchPolicy", "Intercepting all versions of an object"; KEP-492,
    "Convert to webhook-requested version"

    In the review, kind and resource describe what was sent to the webhook; requestKind and requestResource describe what the
    client requested. Equivalent is the default.

    Scenario: A built-in resource is converted for a validating webhook
      Given a validating webhook "careful" for horizontalpodautoscalers in autoscaling/v1
      And "careful" has the match policy Equivalent
      When this object is created:
        """yaml
        apiVersion: autoscaling/v2
        kind: HorizontalPodAutoscaler
        metadata: {name: web}
        spec:
          maxReplicas: 3
          scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
          metrics:
          - type: Resource
            resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}
        """
      Then the request is admitted
      And "careful" is called once
      And the first review sent to "careful" contains:
        """yaml
        request:
          kind: {group: autoscaling, version: v1, kind: HorizontalPodAutoscaler}
          resource: {group: autoscaling, version: v1, resource: horizontalpodautoscalers}
          requestKind: {group: autoscaling, version: v2, kind: HorizontalPodAutoscaler}
          requestResource: {group: autoscaling, version: v2, resource: horizontalpodautoscalers}
          object:
            apiVersion: autoscaling/v1
            spec: {targetCPUUtilizationPercentage: 70}
        """

    Scenario: A patch of the converted object is applied in the client's version
      Given a mutating webhook "target" for horizontalpodautoscalers in autoscaling/v1
      And "target" patches the object:
        """yaml
        - {op: add, path: /spec/targetCPUUtilizationPercentage, value: 55}
        """
      When this object is created:
        """yaml
        apiVersion: autoscaling/v2
        kind: HorizontalPodAutoscaler
        metadata: {name: web}
        spec:
          maxReplicas: 3
          scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
          metrics:
          - type: Resource
            resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}
        """
      Then the request is admitted
      And "target" is called once
      And the object contains:
        """yaml
        apiVersion: autoscaling/v2
        spec:
          metrics:
          - resource: {name: cpu, target: {averageUtilization: 55}}
        """

    Scenario: A custom resource is converted for the webhook
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2"
      And a mutating webhook "careful" for widgets in shop.example.com/v1
      And "careful" adds the label "seen=yes"
      When this object is created:
        """yaml
        apiVersion: shop.example.com/v2
        kind: Widget
        metadata: {name: gear}
        spec: {teeth: 12}
        """
      Then the request is admitted
      And the first review sent to "careful" contains:
        """yaml
        request:
          kind: {group: shop.example.com, version: v1, kind: Widget}
          resource: {group: shop.example.com, version: v1, resource: widgets}
          requestKind: {group: shop.example.com, version: v2, kind: Widget}
          requestResource: {group: shop.example.com, version: v2, resource: widgets}
          object:
            apiVersion: shop.example.com/v1
            spec: {teeth: 12}
        """
      And the object contains:
        """yaml
        apiVersion: shop.example.com/v2
        metadata:
          labels: {seen: "yes"}
        """
      And the audit log records that "careful" changed the object in the first round

    Scenario: The old object of an update is converted, too
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2"
      And this object exists:
        """yaml
        apiVersion: shop.example.com/v1
        kind: Widget
        metadata: {name: gear}
        spec: {teeth: 12}
        """
      And a validating webhook "careful" for widgets in shop.example.com/v1
      When this object is updated:
        """yaml
        apiVersion: shop.example.com/v2
        kind: Widget
        metadata: {name: gear}
        spec: {teeth: 16}
        """
      Then the request is admitted
      And the first review sent to "careful" contains:
        """yaml
        request:
          operation: UPDATE
          requestKind: {version: v2}
          object:
            apiVersion: shop.example.com/v1
            spec: {teeth: 16}
          oldObject:
            apiVersion: shop.example.com/v1
            spec: {teeth: 12}
        """

  Rule: A rule for the client's version takes precedence over a rule for an equivalent version
    Scenario: The object is not converted if a rule lists the version of the request
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2"
      And a validating webhook "both" for widgets in shop.example.com/v1
      And "both" also matches widgets in shop.example.com/v2
      When this object is created:
        """yaml
        apiVersion: shop.example.com/v2
        kind: Widget
        metadata: {name: gear}
        """
      Then the request is admitted
      And "both" is called once
      And the first review sent to "both" contains:
        """yaml
        request:
          kind: {version: v2}
          requestKind: {version: v2}
          object:
            apiVersion: shop.example.com/v2
        """
