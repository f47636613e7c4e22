"""Every figure and table of the papers that a small machine can rerun in shape, each as commands of stabkit.

item.py      what an item is · items*.py: WHICH, a paper a file: the paper's picture in words and numbers, ours, what
             was scaled down, its commands, figures, claims
plan.py      what an item costs beyond what is stored, and which items fit a budget, the cheapest first
run.py       items run one after the other · part.py: an item as it was run
section.py   an item as its page tells it · page.py: an index and a page an item, or all in one file
"""
