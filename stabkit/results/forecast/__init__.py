"""Forecasting only: what updates 0 to 16 leave (measured), the links of the chain in them (links), a word (model).

Fitted and scored by `studies/forecast`, beside the package.
"""
