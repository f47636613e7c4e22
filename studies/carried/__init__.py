"""How often the rate that `stabkit transfer` predicts is right: fit up to a depth, tried at the double."""
