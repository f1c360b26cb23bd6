"""What a process holds in memory: kept arrays and blocks, mapped files, the measured peak."""
