"""Loss surfaces around weights: planes in weight space, the loss at their points, and how rough it is.

directions.py   planes: random and normalised, of the training path, between weights; projection
roughness.py    second differences and curvature of a surface or a cut
spec.py         WHICH surface: weights, plane, points → JSON, surface_id
evaluate.py     the loss at points of a plane, on a copy of the model
tiles.py        what a worker does; the only file here that reads runs
shelf.py        surfaces at rest: tiles while they grow, then a whole folder
anymodel.py     the same for a user's own torch.nn.Module
"""
