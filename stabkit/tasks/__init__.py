"""Tasks: where the sentence pairs come from. Importing this package loads neither torch nor sentencepiece.

base.py       what a task is
synthetic.py  sentences of a small language without end: the default, needs no files
language.py   that language and its translation
corpus.py     parallel text in Moses-style files: found, hashed and read line by line with every check
encoded.py    a subword vocabulary of that text (sentencepiece, loaded where it is made), and its sentences in numbers
text.py       that text as a task: batches
objective.py  what a model learns on it: translation, or the target language alone (causal, masked)
buckets.py    sentences of similar length into padded batches, for both
"""
