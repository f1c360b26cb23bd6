"""Landmarks by what a Gaussian process knows: points of the data by active learning, and places anywhere by ascent."""
