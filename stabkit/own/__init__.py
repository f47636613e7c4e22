"""The user's own model, from `package.module:function` (`factory.py`).

Its sub-layers are found by running it (`sublayers/`); it is held against a recipe (`audit/`), or updated and read over
depths (`probe/`).
"""
