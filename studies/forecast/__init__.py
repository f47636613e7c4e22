"""The forecast's study: which runs (corpus), the fit (regression, coefficients), how good it is (holdouts, scores,
evaluation, heldout_methods), and a page with four figures."""
