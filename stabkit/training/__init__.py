"""The loop that trains one run and measures it (`train.py`), its optimisers and its learning rate. Touches no disk."""
