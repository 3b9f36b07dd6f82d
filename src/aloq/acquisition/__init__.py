"""What to try next: rules for the policy, rules for the environment, and the search for what a rule likes best."""
