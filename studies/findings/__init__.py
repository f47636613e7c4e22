"""The sentences that people will quote, and what became of them when each was tried to be broken."""
