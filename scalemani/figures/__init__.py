"""Arrays in, figures out: embeddings of any size as pictures, and curves of measurements."""

from scalemani.figures.grids import grid_figure
from scalemani.figures.lines import line_figure
from scalemani.figures.picture import drawn_embedding, embedding_picture
from scalemani.figures.pixels import label_picture

__all__ = ["drawn_embedding", "embedding_picture", "grid_figure", "label_picture", "line_figure"]
