"""Every figure and table of the papers that a small machine can rerun in shape, each as commands of stabkit.

item.py      what an item is · items*.py: WHICH, a paper a file: the paper's picture in words and numbers, ours, what
             was scaled down, its commands, figures, claims
plan.py      what an item costs beyond what is stored, and which items fit a budget, the cheapest first
run.py       items run one after the other · part.py: an item as it was run
page.py      the page of all of them
"""
