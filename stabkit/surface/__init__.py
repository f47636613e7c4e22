"""Loss surfaces around weights: planes in weight space, the loss at their points, and how rough it is.

directions.py   planes: random and normalised, of the training path, between weights; projection
roughness.py    roughness and curvature of a surface or a cut
evaluate.py     the loss at points of a plane, on a copy of the model · library.py: by `loss_landscapes`
tiles.py        what a worker does; the only file here that reads runs
anymodel.py     the same for a user's own torch.nn.Module

Which surface it is stands in `results/surface.py`, where it is stored in `storage/surfaces.py`.
"""
