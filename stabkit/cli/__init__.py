"""What a person types and sees: texts → a request, progress and tables. The only room that prints.

app.py          one function a command: parse, call one function of `stabkit.api`, print
command.py      a command made from a function's signature; what a shell offers after Tab
entry.py        what goes wrong is one red line and an exit code
help.py         examples, an answer to a word that is no command
config.py       options from a TOML file
commands/       each command's own words
tables.py       what a sweep's end says · progress.py: how far it is · console.py: how anything is printed
signals.py      Ctrl-C
"""
