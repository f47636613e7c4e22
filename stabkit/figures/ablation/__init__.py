"""α and β, and other settings, varied."""
