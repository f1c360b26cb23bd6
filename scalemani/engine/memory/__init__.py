"""What a process holds in memory: shared objects and blocks, mapped files, the allocator, the measured peak."""
