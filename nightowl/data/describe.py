"""What a source folder shows, as params for a new detector: the layout said outright, so that no later night guesses anew."""

from dataclasses import dataclass
from pathlib import Path

from nightowl.data.formats.detect import detect, list_source
from nightowl.data.formats.listing import relative
from nightowl.data.formats.name_lists import split_lists
from nightowl.data.formats.voc import annotation_and_image_folders
from nightowl.params import DataParams


@dataclass(frozen=True, slots=True)
class Suggestion:
    """`params` for the section `data` (only what differs from its defaults needs writing), the classes, and a sentence."""

    params: DataParams
    classes: tuple[str, ...]
    description: str


def suggest_params(source: Path, given: DataParams | None = None) -> Suggestion:
    """What to write into a detector's params.yaml for `source`, on top of what is `given`. Raises DataError.

    For VOC the class names are fixed in the params, as its layout has no list of them: a name that turns up later is then an
    error instead of a new class.
    """
    source = source.absolute()
    given = given or DataParams()
    layout = detect(source, given)
    params = given.model_copy(update={"layout": layout})
    listing = list_source(source, params)
    if layout == "voc":
        annotations, images = annotation_and_image_folders(source, params)
        lists = split_lists(source, params, listing)
        params = DataParams(
            layout=layout,
            annotations=relative(source, annotations),
            images=relative(source, images),
            classes=listing.classes,
            splits={split: relative(source, path) for split, path in lists.items()},
        )
    return Suggestion(params, listing.classes, listing.description)
