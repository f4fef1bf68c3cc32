"""The stages of a night on nodes, here or rented: asked for as one run, or taken up where another night left it; followed."""

from datetime import UTC, datetime

from prefect import task
from prefect.cache_policies import NO_CACHE

from nightowl.errors import Interrupted, StageFailed
from nightowl.machines.account import Account
from nightowl.machines.board import Board
from nightowl.machines.engine import Engine
from nightowl.machines.fetch import fetch
from nightowl.machines.follow import end, follow, leave
from nightowl.machines.opening import open_site
from nightowl.machines.price import in_usd
from nightowl.machines.records import RunEnd
from nightowl.machines.reopen import reopen
from nightowl.machines.site import Site
from nightowl.night.order import order, place
from nightowl.night.record import Night, settings_of, workspace_in_tree
from nightowl.night.rented import keep_account
from tasks.graph import stage_names
from tasks.say import say
from tasks.wish import is_wish_to_end

STAYS_HERE = ("gate",)  # judges by what the registry knows, and takes seconds


@task(name="machines", cache_policy=NO_CACHE)
def run_on_machines(night: Night) -> tuple[str, ...]:
    """Have the stages done by nodes, if the settings say so; returns which, so that the night only restores them.

    A run is left to go on by whatever ends this but an operator's wish: the next night of the same inputs takes it up. One
    that an earlier night has done, and whose result was deleted from the shared cache since, is made again, once.

    Raises:
        StageFailed: the run ended without its result, or the shared cache lacks it. Interrupted: it was cancelled.
    """
    site = open_site(settings_of(night))
    if site is None:
        return ()
    stages = tuple(stage for stage in stage_names(night.tree) if stage not in STAYS_HERE)
    workspace = workspace_in_tree(night)
    board, done_before = _bring_about(site, night, stages)
    lacking = fetch(board, workspace)
    if lacking and done_before:
        say(f"{board.run_id}: an earlier night has done it, but {lacking}: it is made again")
        if board.end() == done_before:  # and not another night's wish already
            reopen(board)
        board, _ = _bring_about(site, night, stages)
        lacking = fetch(board, workspace)
    if lacking:
        raise StageFailed(f"{board.run_id}: done, but {lacking}: was it deleted just now? the next night makes it again")
    return stages


def _bring_about(site: Site, night: Night, stages: tuple[str, ...]) -> tuple[Board, RunEnd | None]:
    """Have the run done, and no node of it left. Returns its board, and its end if it was done before this was asked."""
    board, engine, before = submit(site, night, stages)
    run_id = board.run_id
    try:
        status = follow(engine, run_id, say, every_seconds=site.poll_seconds)
        end(engine, run_id, say)
    except BaseException as error:
        if is_wish_to_end(error):
            leave(engine, run_id, say)
        raise
    _say_account(keep_account(night, site, board))
    if status.state != "done":
        kind = Interrupted if status.state == "cancelled" else StageFailed
        raise kind(f"{run_id} ended as {status.state}: {status.message}")
    return board, before if before and before.how == "done" else None


def submit(site: Site, night: Night, stages: tuple[str, ...]) -> tuple[Board, Engine, RunEnd | None]:
    """Have the run there, begun or taken up. Returns also how it had ended before."""
    engine = site.engine()
    ordered = order(night, site, stages, datetime.now(UTC))
    board = Board(site.boards(), ordered.job.run_id)
    found, before = board.job() is not None, board.end()
    place(board, ordered)
    wish = f"{ordered.job.nodes} node(s) for {', '.join(stages)}"
    say(f"{board.run_id}: {'taking it up,' if found else 'asking for'} {wish}")
    engine.submit(ordered.job)
    return board, engine, before


def _say_account(account: Account | None) -> None:
    if account is None:
        return
    spent, share = account.goodput, account.goodput.share_training
    cost = f"; {in_usd(spent.usd)} USD, {in_usd(spent.usd_on_demand)} at full price" if account.rented else ""
    trained = "" if share is None else f", {share:.0%} of them training"
    say(f"{account.run_id}: {spent.hours_paid:.2f} machine hours{trained}{cost}")
