"""Pages of a user's own model: probed over depths, watched in training."""
