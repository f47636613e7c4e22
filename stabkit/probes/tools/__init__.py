"""What probes are made with: taps watched, quantities defined once; and probes from a file of one's own."""
