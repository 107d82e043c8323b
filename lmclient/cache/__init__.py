"""The cache of answers: what is kept of one, under which key, and the stores that keep it."""
