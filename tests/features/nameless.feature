# A scenario without a feature.

Scenario: A pod is admitted
  When a pod is created
  Then the request is admitted
