"""Methods that a user reaches by name alone: a folder each, listed in `scalemani.config.methods`."""
