"""What a source folder shows, as params for a new detector: the layout said outright, so that no later night guesses anew."""

from dataclasses import dataclass
from pathlib import Path

from nightowl.data.formats.detect import detect, list_source
from nightowl.data.formats.listing import Listing, relative
from nightowl.data.formats.name_lists import split_lists
from nightowl.data.formats.voc import annotation_and_image_folders
from nightowl.data.overlap import one_split_each
from nightowl.data.split import take_splits
from nightowl.errors import DataError
from nightowl.params import DataParams


@dataclass(frozen=True, slots=True)
class Suggestion:
    """`params` for the section `data` (only what differs from its defaults needs writing), the classes, and a sentence.

    `num_test`: how many images test would have, every one being usable; None where the data cannot be divided as it is.
    """

    params: DataParams
    classes: tuple[str, ...]
    description: str
    num_test: int | None


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
    return Suggestion(params, listing.classes, listing.description, _num_test(listing, params))


def _num_test(listing: Listing, params: DataParams) -> int | None:
    images, _ = one_split_each(listing.images)
    try:
        splits, _ = take_splits({image.path: image.split for image in images}, params.split)
    except DataError:
        return None
    return sum(split == "test" for split in splits.values())
