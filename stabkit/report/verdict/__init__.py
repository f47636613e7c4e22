"""The verdicts: the matrix as a value, the sentences computed from it, what its cells look like."""
