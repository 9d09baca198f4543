Feature: A scenario without steps

  Scenario: The keyword is misspelled
    Givn a mutating webhook "first" for pods
