"""Landmarks: how they are chosen, the nearest of them, and the weights Z over them; and k-means of points."""
