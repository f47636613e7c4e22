"""A user's own model in training, a curve a layer against the updates: what `stabkit.watch` leaves."""
