"""Estimators of scikit-learn's interface; they make the same runs as the command line."""
