import pytest

from nightowl.report.content import Failure, ReportContent
from nightowl.report.outcome import Advice, advice, headline
from tests.report.sample import facts


def everything(said: Advice) -> str:
    return " ".join([*said.sentences, *(f"{command} {purpose}" for command, purpose in said.commands)])


@pytest.mark.parametrize(
    ("ending", "word", "tone"),
    [
        ("promoted", "Promoted", "good"),
        ("refused", "Refused", "bad"),
        ("undecided", "Undecided", "open"),
        ("failed", "Failed", "bad"),
        ("nothing_new", "Nothing new", "calm"),
    ],
)
def test_each_ending_has_its_word_and_colour(contents: dict[str, ReportContent], ending: str, word: str, tone: str) -> None:
    told = headline(contents[ending])
    assert (told.word, told.tone) == (word, tone)
    assert told.sentence == contents[ending].facts.sentence


def test_a_promotion_says_how_to_take_it_back(contents: dict[str, ReportContent]) -> None:
    said = advice(contents["promoted"])
    assert said.commands[0] == ("nightowl rollback demo --reason 'WHY'", "version 7 becomes champion again")


def test_the_first_champion_has_nothing_to_go_back_to(contents: dict[str, ReportContent]) -> None:
    content = contents["promoted"]
    first = content.model_copy(update={"facts": content.facts.model_copy(update={"previous_champion": None})})
    assert "rollback" not in everything(advice(first))
    assert "first champion" in everything(advice(first))


def test_a_refusal_names_the_rules_that_failed(contents: dict[str, ReportContent]) -> None:
    content = contents["refused"]
    assert content.verdict is not None
    said = everything(advice(content))
    failed = [check.rule for check in content.verdict.checks if not check.passed]
    assert failed and all(rule in said for rule in failed[:6])
    assert "The champion, version 7, stands." in said
    assert "nightowl promote demo 8 --force" in said


def test_a_night_cut_short_says_of_the_champion_what_it_knows(contents: dict[str, ReportContent]) -> None:
    content = contents["failed"]
    for update, said in (
        ({"previous_champion": "7"}, "The champion, version 7, stands."),
        ({"previous_champion": None}, "There is still no champion."),
        ({"previous_champion": None, "champion_known": False}, "The champion, if there is one, stands."),
    ):
        told = content.model_copy(update={"facts": content.facts.model_copy(update=update)})
        assert advice(told).sentences[0].startswith(said)


def test_an_undecided_night_says_how_many_images_are_needed(contents: dict[str, ReportContent]) -> None:
    said = everything(advice(contents["undecided"]))
    assert "has 12 images and 1000 are needed: label 988 more" in said


def test_a_difference_that_may_be_chance_asks_for_images_and_not_for_objects(contents: dict[str, ReportContent]) -> None:
    content = contents["undecided"]
    assert content.verdict is not None
    checks = tuple(c.model_copy(update={"passed": c.figure is not None, "undecided": False}) for c in content.verdict.checks)
    chance = checks[-1].model_copy(update={"passed": False, "undecided": True})
    verdict = content.verdict.model_copy(update={"checks": (*checks[:-1], chance)})
    said = everything(advice(content.model_copy(update={"verdict": verdict})))
    assert "may be chance: label more images for test" in said and "gate.margin" in said


def test_a_candidate_held_back_although_better_says_why(contents: dict[str, ReportContent]) -> None:
    night = facts("refused", sentence="better, but made from a dirty tree").model_copy(update={"dirty": True})
    content = contents["promoted"].model_copy(update={"facts": night})
    assert (headline(content).word, headline(content).tone) == ("Not promoted", "open")
    assert "uncommitted changes" in everything(advice(content))


def test_a_failed_night_says_what_is_kept_and_how_to_go_on(contents: dict[str, ReportContent]) -> None:
    said = everything(advice(contents["failed"]))
    assert "What is done is kept (prepare)" in said and "nightowl night demo" in said


def test_an_interrupted_night_is_not_called_a_failure(contents: dict[str, ReportContent]) -> None:
    failure = Failure(stage="train", message="asked to stop", interrupted=True)
    night = facts("failed", stages=("prepare",), failure=failure, sentence="asked to stop")
    told = headline(contents["failed"].model_copy(update={"facts": night}))
    assert (told.word, told.tone) == ("Interrupted", "open")


def test_a_training_that_was_stopped_says_from_where_it_goes_on(contents: dict[str, ReportContent]) -> None:
    saved = "at step 812, with 4 of 24 epochs done"
    failure = Failure(stage="train", message="stopped in train", interrupted=True, seconds=75.0, saved=saved)
    night = facts("failed", stages=("prepare",), failure=failure, sentence="stopped in train")
    content = contents["failed"].model_copy(update={"facts": night})
    assert f"The training is saved {saved}." in everything(advice(content))
    assert "it goes on from there" in everything(advice(content))


def test_a_night_with_nothing_new_says_how_to_train_all_the_same(contents: dict[str, ReportContent]) -> None:
    assert "nightowl retrain demo" in everything(advice(contents["nothing_new"]))


def test_every_command_it_names_exists(contents: dict[str, ReportContent]) -> None:
    commands = {command.split()[1] for content in contents.values() for command, _ in advice(content).commands}
    assert commands <= {"rollback", "predict", "promote", "retrain", "models", "night"}
