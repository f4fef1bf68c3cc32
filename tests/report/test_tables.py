import pytest

from nightowl.data.findings import Finding
from nightowl.evaluation.metrics import ClassMetrics, Curves, Metrics, SizeMetrics, SliceMetrics
from nightowl.report.tables import (
    MAX_PANELS,
    Confusion,
    class_rows,
    confusion_cells,
    overall_rows,
    part_rows,
    pr_panels,
    tally,
    worst_confusions,
)


def metrics(**ap50: float | None) -> Metrics:
    classes = tuple(
        ClassMetrics(name=n, num_truth=5, ap50=v, ap50_95=v, precision=v, recall=v, best_f1_confidence=v)
        for n, v in ap50.items()
    )
    known = [value for value in ap50.values() if value is not None]
    mean = sum(known) / len(known)
    return Metrics(
        model="candidate",
        weights_sha256="",
        dataset_version="",
        split="test",
        num_images=9,
        num_truth=10,
        map50=mean,
        map75=mean,
        map50_95=mean,
        classes=classes,
        seconds_per_image=0.1,
    )


def curves(*confusion: tuple[int, ...]) -> Curves:
    names = tuple("abcdefghijklmnopqrstuvwxyz"[: len(confusion) - 1])
    flat = (1.0,) * 101
    recall = tuple(i / 100 for i in range(101))
    return Curves(classes=names, recall=recall, precision=(flat,) * len(names), confusion=confusion, confusion_confidence=0.25)


def test_classes_stand_beside_those_of_the_same_name() -> None:
    rows = class_rows(metrics(a=0.9, new=0.8), metrics(old=0.1, a=0.7))
    assert [(row.name, row.ap50.champion) for row in rows] == [("a", 0.7), ("new", None)]
    assert rows[0].ap50.difference == pytest.approx(0.2)
    assert rows[1].ap50.difference is None


def test_a_figure_that_was_not_measured_has_no_difference() -> None:
    (row,) = class_rows(metrics(a=None, b=0.5), metrics(a=0.7))[:1]
    assert row.ap50.difference is None


def with_parts(whole: Metrics, small: float | None, lot: float) -> Metrics:
    sizes = (SizeMetrics(size="small", num_truth=3, ap50=small, ap50_95=small, ar100=small),)
    slices = (SliceMetrics(name="lot=1", num_images=4, num_truth=5, map50=lot, map50_95=lot, classes=()),)
    return whole.model_copy(update={"sizes": sizes, "slices": slices})


def test_sizes_and_slices_stand_beside_the_champions_where_it_knows_the_same_classes() -> None:
    ours, theirs = with_parts(metrics(a=0.9), 0.5, 0.8), with_parts(metrics(a=0.7), None, 0.6)
    small, lot = part_rows(ours, theirs)
    assert (small.name, small.num_images, small.num_truth, small.map50.candidate, small.map50.difference) == (
        "small",
        None,
        3,
        0.5,
        None,
    )
    assert (lot.name, lot.num_images, lot.map50_95.champion) == ("lot=1", 4, 0.6)
    assert lot.map50.difference == pytest.approx(0.2)
    others = with_parts(metrics(old=0.7), 0.4, 0.6)
    assert [row.map50.champion for row in part_rows(ours, others)] == [None, None]


def test_overall_figures_are_compared_only_over_the_same_classes() -> None:
    same = overall_rows(metrics(a=0.9), metrics(a=0.7))
    assert [row.name for row in same] == ["mAP50", "mAP75", "mAP50-95"]
    assert same[0].difference == pytest.approx(0.2)
    assert overall_rows(metrics(a=0.9, b=0.2), metrics(a=0.7))[0].champion is None


def test_cells_are_as_dark_as_their_share_and_say_it_in_words() -> None:
    cells = confusion_cells(curves((8, 1, 3), (0, 4, 0), (2, 0, 0)))
    assert cells[0][0].share == pytest.approx(0.8) and cells[0][0].right
    assert cells[0][1].title == "1 of 5 b detected as a" and not cells[0][1].right
    assert cells[2][0].title == "2 of 10 a missed"
    assert cells[0][2].title == "3 of 12 detections of a with no object"


def test_a_class_without_objects_has_no_share_and_does_not_divide_by_zero() -> None:
    assert [cell.share for row in confusion_cells(curves((0, 0), (0, 0))) for cell in row] == [0, 0, 0, 0]


def test_the_most_frequent_errors_come_first_and_right_ones_are_left_out() -> None:
    assert worst_confusions(curves((8, 1, 3), (0, 4, 0), (2, 0, 0))) == (
        Confusion(None, "a", 3),
        Confusion("a", None, 2),
        Confusion("b", "a", 1),
    )


def test_of_many_classes_the_lowest_are_drawn_in_their_own_order() -> None:
    names = "abcdefghijklmnopqrstuvwxyz"
    figures: dict[str, float | None] = {name: 1 - i / 100 for i, name in enumerate(names)}
    rows = class_rows(metrics(**figures), None)
    panels = pr_panels(rows, curves(*[(0,) * 27] * 27), None)
    assert [panel.name for panel in panels] == list(names[-MAX_PANELS:])


def test_a_class_that_was_not_measured_has_a_panel_without_a_curve() -> None:
    unmeasured = curves((1, 0), (0, 0)).model_copy(update={"precision": (None,)})
    (panel,) = pr_panels(class_rows(metrics(a=None, b=0.5), None)[:1], unmeasured, None)
    assert panel.chart is None


def test_findings_are_counted_by_kind_and_by_what_was_done() -> None:
    def finding(path: str) -> Finding:
        return Finding(kind="same_content", path=path, detail="", action="kept")

    clipped = Finding(kind="out_of_frame_box", path="c", detail="", action="clipped")
    assert tally([clipped, finding("a"), finding("b")]) == [("same_content", "kept", 2), ("out_of_frame_box", "clipped", 1)]
