"""DeepNet (Wang et al., journal version), a part of it a file."""
