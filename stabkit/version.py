"""The version of stabkit, where everything may read it: importing it opens no door."""

__version__ = "1.1.0"
