"""How well a trained model translates: a second measurement of a stored run, which only adds to the store.

decode.py   greedy and beam search with remembered keys and values
bleu.py     sacreBLEU with its signature, and the paired bootstrap between systems
job.py      what a worker does; the only file here that reads runs

Which translation it is stands in `results/translation.py`, where it is stored in `storage/translations.py`.
"""
