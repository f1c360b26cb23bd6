"""Arrays with a row a point: how they are cut, grouped and combined, and the random words that belong to rows."""
