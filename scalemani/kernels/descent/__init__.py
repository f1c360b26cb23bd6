"""Steps of a descent over positions: momentum and curvature."""
