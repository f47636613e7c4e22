"""What is stored: folders that are whole or absent. Never imports torch.

shelf.py          one store for every kind of folder: load, commit, quarantine, list · folder.py: its bytes on the disk
store.py          runs, their checkpoints and attempts
locks.py          who is at work on what
surfaces.py       what was measured on runs later
probed.py         probes of a user's models · watched.py: watches of their trainings
texts.py          encoded parallel text, made once for all runs of a task
weights.py        a stored run's weights at any step it kept
export.py         everything as one long table
"""
