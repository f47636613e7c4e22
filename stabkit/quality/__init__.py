"""How well a trained model translates: a second measurement of a stored run, which only adds to the store.

spec.py     WHICH translation: run, search, sentences → JSON, translation_id
decode.py   greedy and beam search with remembered keys and values
bleu.py     sacreBLEU with its signature, and the paired bootstrap between systems
job.py      what a worker does; the only file here that reads runs
shelf.py    translations at rest
plan.py     runs → translations that are not on the shelf → executor → shelf
"""
