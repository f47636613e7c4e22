"""A user's own model in training: the chain of a probe, read on the way (`stabkit.watch`).

schedule.py  after which updates it is read
inputs.py    the batch that it is read on: given, or the first that the model is called with
chain.py     the model as it is read
journal.py   its rows on their way: judged, given to a writer, written
recording.py what is done around each update
watch.py     the two lines
"""
