"""The residual sub-layers of a user's model, found by running it once: by no name and no class.

run.py      one forward pass that leaves the module as it was; finds inputs
watch.py    that pass as a graph of operations on activations (graph.py); memory.py: whose memory a tensor stands on
joins.py    sums x + f(x) in the graph, and mixtures of all values before
sublayer.py what stands in them: scales, norms, matrices, which columns of a fused one are query, key, value
anatomy.py  those as stacks, with what stands around them
places.py   where in the pass the residual stream is read, and whose parameters are whose
reading.py  the stream itself, in any number of passes; like blocks, where there are no sums
"""
