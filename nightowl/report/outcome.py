"""What came of the night in a word and a colour, and what to do next."""

from dataclasses import dataclass
from typing import Literal

from nightowl.report.content import ReportContent

Tone = Literal["good", "bad", "open", "calm"]


@dataclass(frozen=True)
class Headline:
    word: str
    tone: Tone
    sentence: str


@dataclass(frozen=True)
class Advice:
    """What to do next: a few sentences, then commands to copy, each with what it does."""

    sentences: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]


def headline(content: ReportContent) -> Headline:
    """The outcome, for the top of the page."""
    facts = content.facts
    if facts.ending == "failed":
        interrupted = facts.failure is not None and facts.failure.interrupted
        return Headline("Interrupted" if interrupted else "Failed", "open" if interrupted else "bad", facts.sentence)
    if facts.ending == "nothing_new":
        return Headline("Nothing new", "calm", facts.sentence)
    if facts.ending == "promoted":
        return Headline("Promoted", "good", facts.sentence)
    outcome = content.verdict.outcome if content.verdict else "refuse"
    word, tone = _NOT_PROMOTED[outcome]
    return Headline(word, tone, facts.sentence)


_NOT_PROMOTED: dict[str, tuple[str, Tone]] = {
    "promote": ("Not promoted", "open"),
    "refuse": ("Refused", "bad"),
    "undecided": ("Undecided", "open"),
    "same_model": ("Same model", "calm"),
}


def advice(content: ReportContent) -> Advice:
    """What to do next, by outcome."""
    facts = content.facts
    if facts.ending == "failed":
        return _after_failure(content)
    if facts.ending == "nothing_new":
        return _after_nothing_new(content)
    if facts.ending == "promoted":
        return _after_promotion(content)
    outcome = content.verdict.outcome if content.verdict else "refuse"
    if outcome == "promote":
        return _after_held_back(content)
    if outcome == "undecided":
        return _after_undecided(content)
    if outcome == "same_model":
        return Advice(("The training arrived at the champion's own weights, so there is nothing to judge.",), ())
    return _after_refusal(content)


def _after_promotion(content: ReportContent) -> Advice:
    facts, name = content.facts, content.detector
    try_it = (f"nightowl predict --model {name}@champion IMAGE", "look at it on images of your own")
    if facts.previous_champion is None:
        return Advice(("It is this detector's first champion: there is no earlier version to go back to.",), (try_it,))
    return Advice(
        (f"If it disappoints in use, version {facts.previous_champion} is one command away.",),
        ((f"nightowl rollback {name} --reason 'WHY'", f"version {facts.previous_champion} becomes champion again"), try_it),
    )


def _after_refusal(content: ReportContent) -> Advice:
    failed = [check.rule for check in content.verdict.checks if not check.passed] if content.verdict else []
    rules = f"{len(failed)} rule{'' if len(failed) == 1 else 's'}: {', '.join(failed[:6])}{_more(failed, 6)}"
    sentences = [f"{_stands(content)} The candidate failed {rules}."]
    table = "where it lost" if content.facts.previous_champion else "which classes are weak"
    sentences.append(f"The images with most errors are in the gallery below; the per-class table shows {table}.")
    return Advice(tuple(sentences), _look_at_registered(content))


def _after_undecided(content: ReportContent) -> Advice:
    enough = next((check for check in content.verdict.checks if check.rule == "test images"), None) if content.verdict else None
    sentences = [_stands(content)]
    if enough and not enough.passed and enough.figure is not None and enough.limit is not None:
        lacking = int(enough.limit - enough.figure)
        sentences.append(
            f"The test split has {int(enough.figure)} images and {int(enough.limit)} are needed: label {lacking} more "
            "for test, or lower gate.min_test_images if fewer are enough for you."
        )
    elif content.verdict and any(check.undecided for check in content.verdict.checks):
        sentences.append(
            "The difference to the champion may be chance: label more images for test (the verdict says about how many would "
            "decide), or widen gate.margin if a larger loss is acceptable to you."
        )
    else:
        sentences.append("A rule could not be measured; the table of checks says which. It needs labelled objects in test.")
    return Advice(tuple(sentences), _look_at_registered(content))


def _after_held_back(content: ReportContent) -> Advice:
    facts = content.facts
    sentences = [f"The gate would promote it, but it was held back. {_stands(content)}"]
    if facts.dirty:
        sentences.append(
            "The checkout had uncommitted changes; what such a tree makes is never promoted. Commit, and run again."
        )
    if content.export and not content.export.parity.passed:
        sentences.append("The export does not say what the trained model says; see the parity table.")
    return Advice(tuple(sentences), ((f"nightowl night {content.detector}", "run the night again"),))


def _after_nothing_new(content: ReportContent) -> Advice:
    name = content.detector
    return Advice(
        ("Data, params, base weights and code are those of an earlier night, so no stage ran.",),
        ((f"nightowl retrain {name}", "train again all the same"), (f"nightowl models {name}", "list the versions")),
    )


def _after_failure(content: ReportContent) -> Advice:
    done = [timing.stage for timing in content.facts.stages]
    kept = f"What is done is kept ({', '.join(done)}): the next run restores it from the cache." if done else ""
    saved = content.facts.failure.saved if content.facts.failure else None
    training = f"The training is saved {saved}." if saved else ""
    goes_on = "from there" if saved else "after the last stage that ended well"
    return Advice(
        tuple(text for text in (f"{_stands(content)} Nothing was published.", kept, training) if text),
        ((f"nightowl night {content.detector}", f"run it again; it goes on {goes_on}"),),
    )


def _look_at_registered(content: ReportContent) -> tuple[tuple[str, str], ...]:
    version, name = content.facts.registered_version, content.detector
    if version is None:
        return ()
    return (
        (f"nightowl predict --model {name}@{version} IMAGE", "look at the candidate on images of your own"),
        (f"nightowl promote {name} {version} --force --reason 'WHY'", "make it champion all the same, by your own decision"),
    )


def _stands(content: ReportContent) -> str:
    previous = content.facts.previous_champion
    if not content.facts.champion_known:
        return "The champion, if there is one, stands."
    return f"The champion, version {previous}, stands." if previous else "There is still no champion."


def _more(items: list[str], shown: int) -> str:
    return f" and {len(items) - shown} more" if len(items) > shown else ""
