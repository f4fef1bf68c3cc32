import re
from datetime import UTC, datetime, timedelta, timezone
from html.parser import HTMLParser
from pathlib import Path

import pytest

from nightowl.machines.job import Environment
from nightowl.report.collect import collect
from nightowl.report.content import ReportContent
from nightowl.report.page import change, count, duration, figure, moment, plain, render, write_report
from nightowl.stages.workspace import Workspace
from tests.report.sample import facts, make_workspace

VOID = {"meta", "link", "br", "img", "hr", "input"}
EVIL = "<script>alert('x')</script>\"' onload=\"x\u202e&amp;"


class Page(HTMLParser):
    """Every element of a page with its attributes; elements that were left open or closed twice are faults."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"{tag} at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        self.text += data

    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """A whole night on data whose class names and paths are markup."""
    workspace = make_workspace(tmp_path_factory.mktemp("evil"), classes=(EVIL, f"{EVIL}2"), num_test=4, size=128)
    content = collect(workspace, facts("promoted", sentence=EVIL))
    assert content.gallery is not None and content.findings is not None
    worst = tuple(thumb.model_copy(update={"path": EVIL, "note": EVIL}) for thumb in content.gallery.worst)
    bad = [finding.model_copy(update={"path": EVIL, "detail": EVIL}) for finding in content.findings]
    gallery = content.gallery.model_copy(update={"worst": worst})
    return Page(render(content.model_copy(update={"gallery": gallery, "findings": tuple(bad)})))


@pytest.fixture(scope="module")
def htmls(contents: dict[str, ReportContent]) -> dict[str, str]:
    return {ending: render(content) for ending, content in contents.items()}


@pytest.fixture(scope="module")
def pages(htmls: dict[str, str]) -> dict[str, Page]:
    return {ending: Page(html) for ending, html in htmls.items()}


@pytest.mark.parametrize("ending", ["promoted", "refused", "undecided", "failed", "nothing_new"])
def test_every_page_is_well_formed_and_needs_nothing_else(htmls: dict[str, str], pages: dict[str, Page], ending: str) -> None:
    page = pages[ending]
    assert page.faults == [] and page.open == []
    assert not page.tags() & {"script", "link", "iframe", "object", "embed", "base", "form", "img"}
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href", "xlink:href", "action"):
                assert (value or "").startswith(("#", "data:image/jpeg;base64,")), (tag, name, value)
    assert not re.search(r"url\(|@import|https?:", htmls[ending])


@pytest.mark.parametrize("ending", ["promoted", "failed", "nothing_new"])
def test_the_page_forbids_itself_to_load_or_run_anything(pages: dict[str, Page], ending: str) -> None:
    policies = [a["content"] for t, a in pages[ending].elements if a.get("http-equiv")]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


def test_names_from_a_dataset_stay_names(hostile: Page) -> None:
    assert hostile.faults == [] and hostile.open == []
    assert "script" not in hostile.tags()
    assert not any(name.startswith("on") for _, attributes in hostile.elements for name in attributes)
    assert hostile.text.count(EVIL) > 10


def test_anchors_lead_to_parts_that_are_there(pages: dict[str, Page]) -> None:
    for page in pages.values():
        wanted = {(a["href"] or "").removeprefix("#") for t, a in page.elements if t == "a"}
        assert wanted == {a["id"] for _, a in page.elements if "id" in a}


def test_the_verdict_comes_first(contents: dict[str, ReportContent], pages: dict[str, Page]) -> None:
    for ending, content in contents.items():
        text = pages[ending].text
        assert text.index(content.facts.sentence) < text.index("What to do next") < text.index("Lineage")


def test_every_figure_of_the_night_is_on_the_page(contents: dict[str, ReportContent], pages: dict[str, Page]) -> None:
    content, text = contents["promoted"], pages["promoted"].text
    assert content.verdict and content.candidate and content.champion and content.export and content.data and content.gallery
    for check in content.verdict.checks:
        assert check.rule in text and check.detail in text
    for metrics in (content.candidate, content.champion):
        for own in metrics.classes:
            assert own.name in text and f"{own.ap50:.3f}" in text and f"{own.ap50_95:.3f}" in text
    for thumb in content.gallery.worst:
        assert f"{thumb.path}{thumb.num_missed} missed / {thumb.num_false} false" in text
    assert "restored from the cache" in text and "4 min 14 s" in text
    assert content.data.dataset_version[:12] in text and content.facts.code_commit[:12] in text


def test_the_speed_of_every_artefact_is_shown_with_its_percentiles_at_both_batch_sizes(pages: dict[str, Page]) -> None:
    text = pages["promoted"].text
    for name, seconds in ((".pt", 0.0312), ("onnx", 0.0113)):
        for batch in (1, 8):  # two calls each, the second a tenth slower
            p50, p95, p99 = (f"{1000 * seconds * batch * (1 + share / 10):.1f} ms" for share in (0.5, 0.95, 0.99))
            assert f"{name}{batch}{p50}{p95}{p99}{1 / (1.05 * seconds):.1f}" in text.replace("\n", "")


def test_a_format_that_ships_shows_its_checks_and_one_that_is_left_out_its_reasons(contents: dict[str, ReportContent]) -> None:
    export = contents["promoted"].export
    assert export is not None
    shown = render(contents["promoted"])
    assert "openvino ships in fp32" in shown and "openvino: mAP50-95 gap on test" in shown and "model.xml" in shown
    failed = export.parity.others[0].model_copy(update={"attempts": export.parity.attempts[:1], "files": {}, "required": True})
    parity = export.parity.model_copy(update={"others": (failed,), "passed": False})
    gone = render(contents["promoted"].model_copy(update={"export": export.model_copy(update={"parity": parity})}))
    assert "openvino is left out; params require it, so the version may not be published" in gone
    assert gone.count("<li>mAP50-95 gap on test: 0.021, at most 0.005</li>") == 2 and "openvino: " not in gone
    assert "The ONNX (fp32) says what the trained model says" in gone


def test_a_format_that_breaks_a_budget_is_said_to_be_left_out_with_the_figure(contents: dict[str, ReportContent]) -> None:
    verdict = contents["promoted"].verdict
    assert verdict is not None
    slow = verdict.model_copy(update={"left_out": {"openvino": ("openvino: seconds an image: 0.2 s, at most 0.1 s allowed",)}})
    shown = render(contents["promoted"].model_copy(update={"verdict": slow}))
    assert "openvino is left out, as it breaks a budget: openvino: seconds an image: 0.2 s, at most 0.1 s allowed" in shown
    assert "openvino ships" not in shown and "model.xml" not in shown


def test_what_was_not_measured_is_a_dash_and_never_zero(contents: dict[str, ReportContent]) -> None:
    content = contents["promoted"]
    assert content.candidate is not None
    unmeasured = content.candidate.classes[0].model_copy(
        update=dict.fromkeys(("ap50", "ap50_95", "precision", "recall", "best_f1_confidence"))
    )
    classes = (unmeasured, *content.candidate.classes[1:])
    html = render(content.model_copy(update={"candidate": content.candidate.model_copy(update={"classes": classes})}))
    row = re.search(
        rf"<tr><th scope=\"row\"><bdi class=\"name\">{unmeasured.name}</bdi></th>(.*?)</tr>",
        html.partition('id="metrics"')[2],
        re.DOTALL,
    )
    assert row is not None and row[1].count("—") == 7 and "0.000" not in row[1]


def test_a_failed_night_names_stage_and_message_and_what_was_not_reached(pages: dict[str, Page]) -> None:
    text = pages["failed"].text
    assert "loss became NaN at epoch 12" in text
    assert re.search(r"train\s*failed\s*7\.?0? s", text) and re.search(r"evaluate\s*not reached", text)
    assert "mAP50 on test" not in text and "Checks of the gate" not in text


def test_how_the_training_went_is_said(contents: dict[str, ReportContent]) -> None:
    html = render(contents["promoted"])
    for said in (
        "bf16, channels last",
        "3.4 % of the time of the steps",
        "2 from epoch 1, step 1; 1 from epoch 10, step 4",
        "16 instead of 32",
        "epoch 7, step 2",
    ):
        assert said in html
    assert "6.4 images a second" in html, "40 images in 40 epochs of 250 seconds"
    assert "NVIDIA L4 is held back (power limit 100% of the time" in html
    assert "held back" not in render(contents["promoted"].model_copy(update={"hardware": None}))


def test_a_gpu_belongs_only_to_the_night_that_trained(finished: Workspace) -> None:
    night = facts("promoted", sentence="")
    restored = tuple(one.model_copy(update={"executed": one.executed and one.stage != "train"}) for one in night.stages)
    content = collect(finished, night.model_copy(update={"stages": restored}))
    assert content.training is not None and content.hardware is None


def test_what_rented_machines_did_and_cost_is_said_and_only_of_a_night_that_had_some(
    contents: dict[str, ReportContent],
) -> None:
    rented, here = (Page(render(contents[ending])).text for ending in ("rented", "promoted"))
    assert "Rented machines" not in here
    for said in (
        "5 h 06 min",
        "79.7 %",
        "18 min 00 s, as none had been started yet",
        "18\N{NARROW NO-BREAK SPACE}240, and 73 done a second time",
        "2.61 USD; at full price 6.46 USD",
    ):
        assert said in rented
    assert "3.85 USD saved" in rented and "that cost 0.48 USD more than spot would have" in rented
    account = contents["rented"].facts.rented
    assert account is not None
    dear = account.goodput.model_copy(update={"usd": None})
    night = contents["rented"].facts.model_copy(update={"rented": account.model_copy(update={"goodput": dear})})
    unknown = Page(render(contents["rented"].model_copy(update={"facts": night}))).text
    assert "unknown; at full price 6.46 USD" in unknown and "saved" not in unknown


def test_nodes_of_this_machine_cost_no_money(contents: dict[str, ReportContent]) -> None:
    account = contents["rented"].facts.rented
    assert account is not None
    here = account.model_copy(update={"environment": Environment(kind="here"), "full_price": None})
    night = contents["rented"].facts.model_copy(update={"rented": here})
    text = Page(render(contents["rented"].model_copy(update={"facts": night}))).text
    assert "Nodes of this machine" in text and "Node hours" in text and "5 h 06 min" in text
    assert "Rented machines" not in text and "USD" not in text and "paid" not in text and "spot" not in text


def test_a_dirty_tree_is_said(contents: dict[str, ReportContent]) -> None:
    content = contents["promoted"]
    dirty = content.model_copy(update={"facts": content.facts.model_copy(update={"dirty": True})})
    assert "uncommitted changes" in render(dirty) and "uncommitted changes" not in render(content)


def test_many_classes_still_make_a_readable_page(contents: dict[str, ReportContent]) -> None:
    content = contents["promoted"]
    assert content.curves is not None and content.candidate is not None
    names = tuple(f"class {i:02d}" for i in range(80))
    confusion = tuple(tuple(5 if i == j else int((i + j) % 7 == 0) for j in range(81)) for i in range(81))
    precision = tuple(content.curves.precision[i % 6] for i in range(80))
    wide = content.curves.model_copy(update={"classes": names, "precision": precision, "confusion": confusion})
    rows = tuple(content.candidate.classes[i % 6].model_copy(update={"name": name}) for i, name in enumerate(names))
    candidate = content.candidate.model_copy(update={"classes": rows})
    html = render(content.model_copy(update={"curves": wide, "champion_curves": None, "candidate": candidate}))
    assert "The 12 of 80 classes with the lowest AP50" in html and "too many for a matrix" in html
    assert Page(html).faults == []


def test_the_page_is_small_enough_to_send(htmls: dict[str, str]) -> None:
    assert len(htmls["promoted"]) < 3_000_000


def test_a_report_replaces_the_one_before_whole(tmp_path: Path, contents: dict[str, ReportContent]) -> None:
    path = tmp_path / "deep" / "report.html"
    write_report(path, contents["nothing_new"])
    write_report(path, contents["failed"])
    assert path.read_text(encoding="utf-8") == render(contents["failed"])
    assert list(path.parent.iterdir()) == [path]


def test_a_name_that_is_no_text_does_not_stop_the_report(tmp_path: Path, contents: dict[str, ReportContent]) -> None:
    content = contents["nothing_new"].model_copy(update={"detector": "bad\udcff"})
    write_report(tmp_path / "report.html", content)
    assert "bad\\udcff" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (figure(None), "—"),
        (figure(0.0), "0.000"),
        (change(None), "—"),
        (change(0.0214), "+0.021"),
        (change(-0.0214), "−0.021"),
        (change(-0.0001), "0.000"),
        (plain(48.0, 20.0), "48"),
        (plain(0.0, 0.5), "0.000"),
        (plain(4.2e-6, 0.001), "4.2e-06"),
        (plain(-0.06, 0.0), "−0.060"),
        (plain(None, 1.0), "—"),
        (count(12345), "12\u202f345"),
        (duration(0.42), "0.4 s"),
        (duration(9.96), "10 s"),
        (duration(59.7), "1 min 00 s"),
        (duration(425), "7 min 05 s"),
        (duration(11520), "3 h 12 min"),
        (moment(datetime(2026, 1, 2, 4, 5, tzinfo=timezone(timedelta(hours=2)))), "2026-01-02 02:05 UTC"),
        (moment(datetime(2026, 1, 2, 4, 5, tzinfo=UTC)), "2026-01-02 04:05 UTC"),
    ],
)
def test_figures_are_said_for_people(said: str, expected: str) -> None:
    assert said == expected
