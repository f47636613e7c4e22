"""The chain of a user's model in numbers, the same for a probe over depths and a watch in training.

reader.py     what a pass left, as rows: update, stream, branch, cosine
gradients.py  what an optimiser's step hooks see: gradients, steps
"""
