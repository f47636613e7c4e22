"""Every figure and table of the papers that a small machine can rerun in shape, each as commands of stabkit.

items.py     WHICH: the paper's picture in words and numbers, ours, what was scaled down, its commands, figures, claims
plan.py      what an item costs beyond what is stored, and which items fit a budget, the cheapest first
command.py   `stabkit paper …`: list, plan, run, write one page
"""
