"""What people call: the command line, estimators, functions, reports, tuning."""
