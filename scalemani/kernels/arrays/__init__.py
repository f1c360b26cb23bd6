"""Arrays with a row a point, and the random words that belong to rows."""
