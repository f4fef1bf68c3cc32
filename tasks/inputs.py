"""The beginning of a night: its own working tree, and its inputs pinned."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.exceptions import TerminationSignal

from nightowl.data.source import absolute_source
from nightowl.errors import Interrupted
from nightowl.machines.opening import open_site
from nightowl.night.checkout import checkout_root, close_worktree, content_of, open_worktree, snapshot
from nightowl.night.key import Parts, night_key, nothing_new, what_is_new
from nightowl.night.lock import only_night
from nightowl.night.order import refuse_unreachable
from nightowl.night.past import parts_of, past_nights
from nightowl.night.pinning import PinnedInputs, pin_inputs
from nightowl.night.record import Night, Pinned, settings_of, workspace_in_tree
from nightowl.params import load_params
from nightowl.registry.store import open_registry
from nightowl.settings import home_of, load_settings
from nightowl.stages.workspace import Workspace
from tasks.graph import code_paths, share_cache
from tasks.report import report_failure
from tasks.say import say


@contextmanager
def one_night(detector: str, source: str | None = None) -> Iterator[Night]:
    """A night of `detector`, alone on this machine, in a working tree that is removed at the end, whatever the end."""
    root = checkout_root(Path.cwd())
    settings = load_settings(root)
    home = home_of(settings)
    load_params(root, detector)
    site = open_site(settings)
    if site is not None:
        refuse_unreachable(site, root, detector, settings, source)
    with only_night(home, detector):
        night = _begin(root, home, detector, absolute_source(source) if source else None)
        try:
            yield night
        except (Exception, KeyboardInterrupt, Interrupted) as error:
            report_failure(night, error)
            raise
        except TerminationSignal:
            report_failure(night, Interrupted("ended from outside; the next night goes on from here"))
            raise
        finally:
            close_worktree(root, night.tree)


def _begin(root: Path, home: Path, detector: str, source: str | None) -> Night:
    now = datetime.now(UTC)
    code = snapshot(root)
    name = f"{now:%Y%m%dT%H%M%S}-{code.commit[:7]}"
    folder = home / "nights" / detector / name
    for left_behind in (home / "nights" / detector).glob("*/tree"):
        close_worktree(root, left_behind)  # of a night that was killed; we hold its lock now
    open_worktree(root, folder / "tree", code.commit)
    night = Night(
        id=name,
        detector=detector,
        root=root,
        tree=folder / "tree",
        folder=folder,
        code_commit=code.commit,
        head=code.head,
        dirty=code.dirty,
        shares=share_cache(root, folder / "tree"),
        source=source,
        started_at=now,
    )
    say(f"night {night.id} of {detector}, commit {code.head[:7]}")
    if night.dirty:
        say("the tree has changes that are not committed: the night runs them, but what it makes cannot be promoted")
    if not night.shares:
        say("no DVC remote: what the stages make stays in this checkout's cache, and nothing is pushed")
    return night


@task(name="pin", cache_policy=NO_CACHE)
def pin(night: Night) -> Pinned:
    """Pin the inputs in the checkout, copy them to the night's tree, and say whether anything is new."""
    settings = settings_of(night)
    registry = open_registry(settings)
    params = load_params(night.tree, night.detector)
    workspace = Workspace(night.root, night.detector, settings)
    inputs = pin_inputs(workspace, params, registry, night.source)
    shutil.copytree(workspace.inputs, workspace_in_tree(night).inputs)
    code = content_of(night.root, night.code_commit, code_paths(night.tree, night.detector))
    now = Parts(inputs.dataset_version, params.digest(), inputs.base.identity)
    key = night_key(now, code)
    champion = inputs.champion.version if inputs.champion else None
    versions = registry.versions(night.detector)
    known = nothing_new(key, champion, past_nights(versions))
    _say_inputs(inputs)
    if known is None and versions:
        last = versions[-1]
        say(what_is_new(last.version, parts_of(last.record), now, last.record.night_key == key))
    return Pinned(
        night_key=key,
        champion_version=champion,
        nothing_new=known.sentence if known else None,
        still_refused=known is not None and not known.is_champion,
    )


def _say_inputs(inputs: PinnedInputs) -> None:
    if inputs.pulled:
        say(f"pulled {inputs.pulled}")
    counts = ", ".join(f"{count} {split}" for split, count in inputs.manifest.num_images().items())
    say(f"pinned dataset {inputs.dataset_version[:12]}: {counts}; base {inputs.base.name}")
