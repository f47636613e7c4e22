"""A user's own model at one depth: a few updates, the chain read on the way (`stabkit probe`).

built_model.py  what a factory returned as one value: model, loss, optimiser, the batch that the model is read on
objective.py    its loss; where it returned none: next tokens, or labels of images (learnable.py)
schedule.py     its rate
loop.py         the updates, and what is read between them
changes.py      what may mend it
job.py          what a worker does
"""
