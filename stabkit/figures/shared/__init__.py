"""What figures share: what may be compared with what, one look, curves in panels, texts, and the numbers of several."""
