"""What an epoch draws its samples from: the params, with mosaic and mixup as they stand in that epoch."""

from nightowl.data.augment.draw import Ranges
from nightowl.params import TrainParams


def ranges(train: TrainParams, num_images: int, size: int, epoch: int) -> Ranges:
    """Of `epoch` (from 0), for a training set of `num_images` and the training size `size`."""
    augment = train.augment
    return Ranges(
        num_images=num_images,
        size=size,
        mosaic=mosaic_probability(train, epoch),
        mixup=0.0 if _is_closed(train, epoch) else augment.mixup,  # upstream ends both together
        hsv=(augment.hsv_h, augment.hsv_s, augment.hsv_v),
        degrees=augment.degrees,
        translate=augment.translate,
        scale=augment.scale,
        shear=augment.shear,
        perspective=augment.perspective,
        flip_up_down=augment.flip_up_down,
        flip_left_right=augment.flip_left_right,
    )


def mosaic_probability(train: TrainParams, epoch: int) -> float:
    """From `mosaic` in a straight line to `mosaic_last` in the last epoch before it is closed; 0 in the last
    `close_mosaic_epochs`."""
    if _is_closed(train, epoch):
        return 0.0
    begin, end = train.augment.mosaic, train.augment.mosaic_last
    num_open = train.epochs - train.close_mosaic_epochs
    return begin if end is None or num_open == 1 else begin + (end - begin) * epoch / (num_open - 1)


def most_objects(train: TrainParams, most_of_an_image: int) -> int:
    """The most boxes that one sample of any epoch can have."""
    augment = train.augment
    return most_of_an_image * (4 if augment.mosaic or augment.mosaic_last else 1) * (2 if augment.mixup else 1)


def _is_closed(train: TrainParams, epoch: int) -> bool:
    return epoch >= train.epochs - train.close_mosaic_epochs
