"""Runs of committed pages that end near the line between training and not, trained twice as long."""
