"""What a script or a notebook calls: the commands as functions that return tables.

    runs.py      sweep, load_runs, load_records
    own.py       probe
    options.py   values of Python as the command line reads them

`stabkit.sweep`, `stabkit.load_runs`, `stabkit.load_records` and `stabkit.probe` are these; options have the command
line's names and values, so that what one has learnt there holds here.
"""
