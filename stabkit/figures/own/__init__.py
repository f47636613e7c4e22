"""A user's own model, a curve a depth: what `stabkit probe` shows."""
