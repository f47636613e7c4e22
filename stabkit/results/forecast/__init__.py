"""What sixteen updates say of a run's outcome: links of the chain → a logistic model → a word beside `early`."""
