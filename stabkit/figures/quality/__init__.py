"""Translations: BLEU, and which differences are more than chance."""
