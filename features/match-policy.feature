Feature: Match policy
  One resource is often served in several versions. A webhook's rule names some of them; its match policy decides what
  happens to requests that use another.

  Source: Dynamic admission control, "Matching requests: matchPolicy"; apiserver
  pkg/admission/plugin/webhook/generic/webhook.go

  Rule: With the policy Exact a webhook is called only for the versions that its rules name
    Scenario: Another version of a built-in resource passes by
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

    Scenario: The version that the rule names does not
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
      Then the request is refused with 400
      And the message is 'admission webhook "strict.admit.example.com" denied the request: not this one'
      And "strict" is called once

    Scenario: Another version of a custom resource passes by
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

  Rule: With the policy Equivalent it is called for every version, and gets the object in one that it named
    Source: Dynamic admission control, "Matching requests: matchPolicy", "Intercepting all versions of an object"; KEP-492,
    "Convert to webhook-requested version"

    The review says in kind and resource what was sent to the webhook, and in requestKind and requestResource what the
    client asked for. It is the policy of a webhook that does not say which.

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
      And the first review of "careful" contains:
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

    Scenario: What a mutating webhook changes in its version arrives in the client's version
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
      And the first review of "careful" contains:
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
      And the audit log says that "careful" changed the object in the first round

    Scenario: The old object of an update is converted too
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
      And the first review of "careful" contains:
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

  Rule: A rule that names the client's version comes before one that names an equivalent
    Scenario: Nothing is converted for a webhook that knows the version of the request
      Given a custom resource "widgets.shop.example.com" with the versions "v1, v2"
      And a validating webhook "both" for widgets in shop.example.com/v1
      And "both" is also registered for widgets in shop.example.com/v2
      When this object is created:
        """yaml
        apiVersion: shop.example.com/v2
        kind: Widget
        metadata: {name: gear}
        """
      Then the request is admitted
      And "both" is called once
      And the first review of "both" contains:
        """yaml
        request:
          kind: {version: v2}
          requestKind: {version: v2}
          object:
            apiVersion: shop.example.com/v2
        """
