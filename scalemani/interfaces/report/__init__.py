"""One self-contained page about a run: what came out, how good it is, what it took, and how to have it again."""
