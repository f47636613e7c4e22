"""How often the rate that `stabkit transfer` foretells is right: fit up to a depth, tried at the double."""
