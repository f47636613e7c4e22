"""What options are, and what they ask for: values → requests, every one checked before torch is imported.

option.py      what an option is beside name, type and default: help, panel, metavar
ranges.py      its value: a text in a little language, or Python's own
grids.py       options → the request of a command that trains · model.py, machine.py, own.py: its parts
landscape.py   with surfaces · probe.py: of a user's own model · stored.py: stored runs by name
"""
