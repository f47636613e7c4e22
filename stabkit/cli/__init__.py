"""What a person types and sees: texts → a request, progress and tables. The only room that prints.

app.py          one function a command: parse, call one function, print
entry.py        what goes wrong is one red line and an exit code
front/          help in panels, completion, an answer to a word that is no command
options.py      which command takes which option, and its default · flags.py: what each is called and says
config.py       options from a TOML file · lines.py: a command as a line of text
parsing/        options → a Request: sweep, ablate, slope · landscape · the machine (device, workers, output)
ranges.py       `6,18,50`, `0.25..4`: the little languages
commands/       each command's own words
tables.py       what a sweep's end says · progress.py: how far it is · console.py: how anything is printed
signals.py      Ctrl-C
"""
