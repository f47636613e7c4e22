"""What keeps a page to seconds: selections made once, points without pandas, panels whose ticks are drawn together."""
