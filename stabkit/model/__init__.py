"""The model: one residual formula, two kinds of sub-layer, an encoder-decoder Transformer. Nothing here asks which
method it is; a method's slots decide.

Shape suffixes in this folder: T positions (S of a source), B sentences, D hidden width, H heads, V vocabulary,
G = B·H attention problems, E = D/H width of a head. Positions come first (T, B, D): heads and sentences then merge into
one batch of matrices without a copy.
"""
