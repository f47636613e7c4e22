"""How well a trained model translates: a second measurement of a stored run, which only adds to the store.

decode.py   greedy and beam search with remembered keys and values
job.py      what a worker does: translate, score with sacreBLEU, store; the only file here that reads runs

Which translation it is stands in `results/translation.py`, where it is stored in `storage/translations.py`.
"""
