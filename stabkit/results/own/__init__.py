"""What a probe of a user's own model leaves, and what it says: knows neither torch nor disk.

cell.py     one model at one depth, rate and seed: its sub-layers and records; the numbers of its chain
depth_fit.py  a number against depth: power or exponential, with an interval over seeds
words.py    a link's numbers as words
verdict.py  the four links of the chain, each with level, exponent, limit, evidence; the worst is the whole
"""
