Feature: Invalid Gherkin

  Scenario: An extra line
    Given a mutating webhook "first" for pods
    Perhaps the request is admitted
