"""Arrays in, figures out: embeddings of any size as pictures, and curves of measurements."""

from scalemani.figures.composing import checked_look
from scalemani.figures.drawing import checked_suffix
from scalemani.figures.grids import grid_figure
from scalemani.figures.lines import line_figure
from scalemani.figures.picture import drawn_embedding, embedding_picture, picture_or_path
from scalemani.figures.pixels import label_picture
from scalemani.figures.sheets import Size

__all__ = [
    "Size",
    "checked_look",
    "checked_suffix",
    "drawn_embedding",
    "embedding_picture",
    "grid_figure",
    "label_picture",
    "line_figure",
    "picture_or_path",
]
