"""A user's own model at one depth: a few updates, the chain read on the way (`stabkit probe`).

made.py      what a factory returned as one value: model, loss, optimiser, the batch that the model is read on
defaults.py  a loss where it returned none: next tokens, or labels of images, at random
loop.py      the updates, and what is read between them
job.py       what a worker does
"""
