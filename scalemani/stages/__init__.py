"""One file a stage: which arrays it reads, what it writes, and the kernels in between. Wiring only."""
