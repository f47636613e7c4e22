"""The user's own model: found by running it, audited, probed, watched; from `package.module:function` (`factory.py`).

Its sub-layers are found by running it (`sublayers/`); it is held against a recipe (`audit/`), or updated and read over
depths (`probe/`).
"""
