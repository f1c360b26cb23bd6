"""Arrays in, figures out: embeddings of any size as pictures, and curves of measurements."""

from scalemani.figures.lines import line_figure
from scalemani.figures.picture import embedding_picture

__all__ = ["embedding_picture", "line_figure"]
