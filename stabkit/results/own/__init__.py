"""What a probe of a user's own model leaves, and what it says: knows neither torch nor disk.

cell.py     one model at one depth, rate and seed: its sub-layers and records; the numbers of its chain
verdict.py  the four links of the chain, each with level, exponent, limit, evidence; the worst is the whole
"""
