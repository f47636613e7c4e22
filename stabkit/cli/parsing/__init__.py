"""Options (texts) → requests: every one checked before torch is imported."""
