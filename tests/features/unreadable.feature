Feature: Invalid Gherkin

  Scenario: A line too many
    Given a mutating webhook "first" for pods
    Perhaps the request is admitted
