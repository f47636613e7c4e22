"""Loss surfaces, cuts through them, and paths on them."""
