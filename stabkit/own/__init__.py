"""The user's own model: read from `package.module:function` (`factory.py`), held against a recipe (`audit/`)."""
