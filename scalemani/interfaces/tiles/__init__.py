"""Static tiles of a map: counts of points by pixel, points where one zooms in, and the page that shows them."""
