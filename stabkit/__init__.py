"""stabkit: will this residual, normalisation and initialisation scheme stay stable at this depth?"""

__version__ = "0.1.0"
