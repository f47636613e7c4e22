"""How sub-layers are computed: by one C++ file, or in torch's operations.

    stack.cpp      sub-layers forward and backward as one call, of any of the parts and scales that methods put there
    build.py       compiles it, where there is a compiler; imports nothing of stabkit
    native.py      finds and loads what was compiled; its structures
    fused.py       sub-layers as it takes them, and the one node of torch's graph that they become
    head.py        logits and loss as another
    lease.py       what a call is given: memory to work in, addresses, where gradients are added
    reference.py   linear maps and attention in torch's operations, which the Python path is made of
    products.py    which library multiplies matrices here

Both paths give the same to rounding (`tests/kernels/`); a run's environment says which it took.
"""
