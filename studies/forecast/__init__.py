"""The forecast's study: which runs (corpus), the fit (regression, coefficients), how good it is (holdouts, scores,
evaluation, unseen), and its page."""
