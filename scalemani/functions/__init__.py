"""Functions on arrays in memory: the steps of the routes one by one."""
