"""What a run leaves, as values: knows neither torch nor disk.

records.py       every probe's series · outcome.py: the one rule of how it ended, and its chain
line.py          straight lines, in logarithms · depth_fit.py: a number against depth · words.py: numbers as words
surface.py       WHICH loss surface around it
"""
