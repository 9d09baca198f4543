@fast
Feature: What passes

  Scenario: A webhook is there
    Given a mutating webhook "first" for pods

  Rule: A rule has scenarios of its own
    Scenario Outline: The webhook <name> is there
      Given a mutating webhook "<name>" for pods

      @second
      Examples:
        | name   |
        | second |

    @envtest @cluster
    Scenario: A webhook is there elsewhere
      Given a mutating webhook "elsewhere" for pods
