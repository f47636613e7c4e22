"""WHERE IT RESTS: folders that are whole or absent. Never imports torch.

folder.py         what every kind of folder has in common: written aside, checked, put in quarantine
store.py          runs · surfaces.py · translations.py: what was measured on them later
texts.py          encoded parallel text, made once for all runs of a task
weights.py        a stored run's weights at any step it kept · size.py: how many bytes a run takes
export.py         everything as one long table
"""
