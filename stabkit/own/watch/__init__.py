"""A user's own model in training: the chain of a probe, read on the way (`stabkit.watch`).

watch.py        the two lines
inputs.py       what it is given: what cannot be watched; the batch that it is read on; losses
recording.py    what is done around each update, and after which of them the model is read
chain.py        the model as it is read
still.py        what does not move
distributed.py  of several processes, which record
journal.py      rows on their way: judged, given to a writer, written
writers.py      experiment trackers as writers
"""
