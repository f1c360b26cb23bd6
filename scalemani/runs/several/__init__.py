"""What two runs have to do with each other: shared rows, how they lie, a start from the other, points that follow."""
