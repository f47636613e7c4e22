"""What to read: the verdict matrix (`matrix`) and how it was run (`how`) as values, the page (`html`). No torch."""
