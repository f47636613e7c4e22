"""The links of the chain, step by step and layer by layer: updates, LN inputs, branches, gradients, the loss."""
