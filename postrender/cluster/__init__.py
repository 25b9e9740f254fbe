"""A live cluster: how it is reached, what is read of it, and what that means for gangs; needs the extra `cluster`."""
