Feature: What fails

  Scenario: Nothing was asked
    Given a mutating webhook "first" for pods
    Then the request is admitted
    And "first" is called once
