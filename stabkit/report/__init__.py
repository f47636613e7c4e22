"""What to read: the verdict matrix as a value (`matrix`), how it was run (`how`), the page (`html`). Never imports torch."""
