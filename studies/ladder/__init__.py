"""Does a small copy say what becomes of the wide model? Recipes probed at width 64, trained at 64 to 512."""
