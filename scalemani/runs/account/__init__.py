"""What can be said of a run from its store: how long its stages take, and which points fall short."""
