"""What to read: one self-contained HTML file, and the `--json` document beside it.

html.py           the page: everything that assets/page.html.j2 shows · files.py: written to disk, figures too
order.py          whose page it is, and in which order it tells · sparks.py: curves in the matrix
cards.py          a figure with its drawing, texts, table and data
provenance.py     how it was run
transfer.py       the page of rates · own/: the pages of a user's own model
json_document.py  the same for machines
"""
