"""The table of recent methods under the optimisers of 2026."""
