"""A user's own model in training: the chain of a probe, read on the way (`stabkit.watch`).

watch.py        the two lines
inputs.py       what it is given: what cannot be watched; the batch that it is read on
schedule.py     after which updates it is read
losses.py       losses as they are given
recording.py    what is done around each update
chain.py        the model as it is read
distributed.py  of several processes, which record
journal.py      rows on their way: judged, given to a writer, written
writers.py      experiment trackers as writers
"""
