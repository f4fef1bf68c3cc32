"""Detections of tiles as detections of the image; supervision's greedy merging is the oracle."""

import numpy as np
import pytest
from numpy.typing import NDArray
from supervision.detection.utils.iou_and_nms import OverlapMetric, box_non_max_merge

from nightowl.evaluation.merge import merge_tiles
from nightowl.evaluation.postprocess import Found
from nightowl.params import TilingParams

UNION, SUPPRESS = TilingParams(), TilingParams(merge="suppress")


def found(*rows: tuple[float, float, float, float, float, int]) -> Found:
    table = np.array(rows, np.float32).reshape(-1, 6)
    return Found(table[:, :4], table[:, 4], table[:, 5].astype(np.int32))


def scattered(seed: int, num: int) -> NDArray[np.float32]:
    """Boxes xyxy with score and class (num, 6), crowded, no two scores alike."""
    random = np.random.default_rng(seed)
    corner, side = random.uniform(0, 200, (num, 2)), random.uniform(5, 60, (num, 2))
    score = random.permutation(num)[:, None] / num * 0.9 + 0.05
    return np.hstack([corner, corner + side, score, random.integers(0, 3, (num, 1))]).astype(np.float32)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.9])
def test_merging_equals_supervision_when_every_box_has_a_tile_of_its_own(seed: int, threshold: float) -> None:
    rows = scattered(seed, 80)
    groups = box_non_max_merge(rows.astype(np.float64), threshold, OverlapMetric.IOS)
    hulls = [[*rows[group, :2].min(axis=0), *rows[group, 2:4].max(axis=0), *rows[group[0], 4:]] for group in groups]
    expected = np.array(sorted(hulls, key=lambda row: -row[4]), np.float32)
    tiling = TilingParams(merge_overlap=threshold)
    merged = merge_tiles([found(tuple(row)) for row in rows.tolist()], tiling, 300)
    assert 5 < len(merged.score) < 80, "some merge and some do not"
    np.testing.assert_array_equal(np.column_stack(merged), expected)


def test_an_object_cut_by_an_edge_is_one_object_again() -> None:
    left, right = found((80, 10, 100, 30, 0.6, 0)), found((80, 10, 120, 30, 0.9, 0))
    assert merge_tiles([left, right], UNION, 300).boxes_xyxy.tolist() == [[80, 10, 120, 30]]
    best_cut = merge_tiles([left._replace(score=np.array([0.95], np.float32)), right], UNION, 300)
    assert best_cut.boxes_xyxy.tolist() == [[80, 10, 120, 30]], "the hull, though the cut one scores better"
    suppressed = merge_tiles([left._replace(score=np.array([0.95], np.float32)), right], SUPPRESS, 300)
    assert suppressed.boxes_xyxy.tolist() == [[80, 10, 100, 30]]


@pytest.mark.parametrize(
    ("first", "second", "num", "why"),
    [
        ((0, 0, 10, 10, 0.9, 0), (0, 0, 10, 10, 0.8, 0), 1, "the same object twice"),
        ((0, 0, 10, 10, 0.9, 0), (0, 0, 10, 10, 0.8, 1), 2, "two classes are two findings"),
        ((0, 0, 10, 10, 0.9, 0), (6, 0, 16, 10, 0.8, 0), 2, "overlap of four tenths is under the half"),
        ((0, 0, 10, 10, 0.9, 0), (5, 5, 5, 5, 0.8, 0), 2, "a box without area matches nothing"),
    ],
)
def test_boxes_of_two_tiles_match_by_class_and_overlap(
    first: tuple[float, ...], second: tuple[float, ...], num: int, why: str
) -> None:
    tiles = [found((*first[:5], int(first[5]))), found((*second[:5], int(second[5])))]  # type: ignore[arg-type]
    assert len(merge_tiles(tiles, UNION, 300).score) == num, why


def test_within_a_tile_the_network_has_decided() -> None:
    nested = found((0, 0, 40, 40, 0.9, 0), (10, 10, 20, 20, 0.8, 0))
    assert len(merge_tiles([nested, found()], UNION, 300).score) == 2


def test_no_tile_with_a_finding_gives_none_and_the_best_are_kept() -> None:
    assert len(merge_tiles([found(), found()], UNION, 300).score) == 0
    apart = [found((100 * i, 0, 100 * i + 10, 10, 0.1 * (i + 1), 0)) for i in range(5)]
    assert merge_tiles(apart, UNION, 2).score.tolist() == pytest.approx([0.5, 0.4])
