"""The built-in data: circuit boards under an inspection camera, with six kinds of fault in known places.

Every image is a function of (seed, index) alone, drawn from real geometry: a routed copper layout, faults cut into it or
added to it, then the look of a thresholding camera. It is there to try a whole night on without any data of one's own; a
model trained on it is of no use on a real line.
"""

from nightowl.boards.board import Board, draw_board
from nightowl.boards.faults import CLASSES
from nightowl.boards.folder import generate

__all__ = ["CLASSES", "Board", "draw_board", "generate"]
