"""Arrays in, figures out: embeddings of any size as pictures, and charts of measurements."""

from scalemani.io.figures.charts import bar_figure, front_figure, grid_figure, label_picture, line_figure
from scalemani.io.figures.look import Palette, Size, checked_colours, checked_look, checked_suffix
from scalemani.io.figures.picture import draw_on, drawn_embedding, embedding_figure, embedding_picture

__all__ = [
    "Palette",
    "Size",
    "bar_figure",
    "checked_colours",
    "checked_look",
    "checked_suffix",
    "draw_on",
    "drawn_embedding",
    "embedding_figure",
    "embedding_picture",
    "front_figure",
    "grid_figure",
    "label_picture",
    "line_figure",
]
