"""Methods beside each other: DeepNet's Table 1."""
