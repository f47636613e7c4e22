"""WHAT TO SHOW: pictures as values (`picture.py`: texts, select → frame, draw, title, alt), a row in a table each.

catalogue.py       the tables of the pictures of runs: order = order on the page
ablation/ chain/ depth/ methods/ surfaces/    a room a subject; curves of runs are rows of `curve_picture.py`
probes/recorded.py the pictures of a probe that has none of its own
model_curves.py    those of a user's model: of `probe`, of a watch
drawing/           what they are drawn with

To add one: a value in a file of its room, its row in its table (docs/extend.md).
"""
