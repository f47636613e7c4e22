"""A corpus of other people's kind of models: drawn by a design, trained to an outcome, probed before; and what a
probe's verdict, its cures and a watch's alarms are worth on the part that judges."""
