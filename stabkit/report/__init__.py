"""WHAT TO READ: one self-contained HTML file, and the `--json` document beside it.

html.py           the page: everything that assets/page.html.j2 shows · files.py: written to disk, figures too
headline.py       its first sentences · matrix.py: the verdicts · cards.py: a figure with its texts, table and data
how.py            how it was run · turn.py: surfaces that turn
json_document.py  the same for machines
"""
