"""The table of 2026 as pictures: they select from `results.today.Today`."""
