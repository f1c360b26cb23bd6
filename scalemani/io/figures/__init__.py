"""Arrays in, figures out: embeddings of any size as pictures, and charts of measurements."""

from scalemani.io.figures.charts import grid_figure, label_picture, line_figure
from scalemani.io.figures.look import Size, checked_look, checked_suffix
from scalemani.io.figures.picture import drawn_embedding, embedding_picture

__all__ = [
    "Size",
    "checked_look",
    "checked_suffix",
    "drawn_embedding",
    "embedding_picture",
    "grid_figure",
    "label_picture",
    "line_figure",
]
