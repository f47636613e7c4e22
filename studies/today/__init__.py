"""The table of recent methods (2026): which runs (design), its numbers (table), a page with four figures, tables and
sentences; the time of a step (step_cost)."""
