"""Who acts: accounts, their tokens, and the invitations by which people come in."""
