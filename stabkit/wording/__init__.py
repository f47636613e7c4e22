"""What people read: every sentence, label and number in words, made of values and keys. Knows no figure and no file."""
