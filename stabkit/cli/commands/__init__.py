"""Each command's own words; what they say is computed in the rooms below."""
