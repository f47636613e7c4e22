"""What to read: the verdict matrix (`matrix`), one sentence (`headline`), how it was run (`how`), the page (`html`)."""
