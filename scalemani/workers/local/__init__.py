"""Worker processes on this machine: a scheduler in this process, workers that are replaced when they end, scratch."""
