"""What a person meets before a command runs: its help, completion, an answer to a word that is none."""
