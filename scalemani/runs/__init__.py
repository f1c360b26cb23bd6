"""Running a route: what it takes, what is missing, doing it, and reading what is finished."""
