Feature: Undefined steps

  Background:
    Given a mutating webhok "first" for pods

  Scenario: The moon
    When the moon is full of cheese and mice dance upon it

  Scenario: The same mistake in another scenario
    Given a mutating webhok "first" for pods
