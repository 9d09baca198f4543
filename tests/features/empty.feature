Feature: A scenario without steps

  Scenario: The keyword is misspelt
    Givn a mutating webhook "first" for pods
