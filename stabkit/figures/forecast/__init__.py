"""What a study says of the forecast: pictures of rows, not of runs."""
