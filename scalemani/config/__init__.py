"""Parameters, routes, objectives, limits and checks: plain data."""
