"""Barnes-Hut sums over a tree of cells."""
