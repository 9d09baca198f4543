@fast
Feature: Passing steps

  Scenario: A webhook is configured
    Given a mutating webhook "first" for pods
    Then the pod "web" does not exist

  Rule: A rule has scenarios of its own
    Scenario Outline: The webhook <name> is configured
      Given a mutating webhook "<name>" for pods
      Then the pod "web" does not exist

      @second
      Examples:
        | name   |
        | second |

    @envtest @cluster
    Scenario: Another webhook is configured
      Given a mutating webhook "elsewhere" for pods
