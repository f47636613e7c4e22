"""The curves of any probe: what has no picture of its own is seen by site and by step."""
