"""The residual sub-layers of a user's model, found by running it once: by no name and no class.

run.py      one forward pass that leaves the module as it was; finds inputs
watch.py    that pass as a graph of operations on activations (graph.py); products.py: its products of matrices;
            memory.py: whose memory a tensor stands on
columns.py  which columns of a fused matrix are query, key, value
joins.py    sums x + f(x) in the graph
sublayer.py what stands in them: scales, norms, matrices
anatomy.py  those as stacks, with what stands around them
places.py   where in the pass the residual stream is read, and whose parameters are whose
blocks.py   like blocks, where there are no sums
reading.py  the stream itself, in any number of passes
"""
