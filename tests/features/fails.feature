Feature: Failing steps

  Scenario: A step without a request fails
    Given a mutating webhook "first" for pods
    Then the request is admitted
    And "first" is called once
