"""Methods of after 2022: one paper a file."""
