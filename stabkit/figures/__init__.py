"""The pictures: one a file, one row in a table (order = order on the page): those of runs in `catalogue.py`, those of a
user's model in `own/` and `watched/`.

Each file holds what is drawn and nothing else:

    NAME, SHORT, CAPTION    its name, its name in the contents list, the paper's figure
    READ                    how to read it
    INDEX, VALUE            the frame's column that runs down the folded table, and the one that fills it
    select(runs) → frame    exactly what is drawn; also the CSV and the folded table
    draw(frame) → Figure    the picture of that frame
    title(runs) → text      a finding where the data support one, else what is shown
    alt(frame) → text       for those who do not see it
    OPTIONAL                if true: not on a page for which the frame is empty

To add one: write the file in the room of its subject, add its row to its table. What several share stands in `shared/`,
what pictures are drawn with in `drawing/`.
"""
