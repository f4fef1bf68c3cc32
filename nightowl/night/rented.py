"""What the nodes of a night did, and rented ones cost, kept beside its report and in its bundle."""

from pathlib import Path

from nightowl.files import write_record
from nightowl.machines.account import Account, account_of
from nightowl.machines.board import Board
from nightowl.machines.site import Site
from nightowl.night.record import Night


def account_file(night: Night) -> Path:
    """Where the account is, or will be."""
    return night.folder / "machines.json"


def keep_account(night: Night, site: Site, board: Board) -> Account | None:
    """Write the account of the run on `board` down for the night. Prices that nobody tells are unknown in it."""
    account = account_of(board, site.prices)
    if account is not None:
        write_record(account_file(night), account)
    return account


def rented_by(night: Night) -> Account | None:
    """The account of the night's nodes; None for a night that ran its stages itself."""
    path = account_file(night)
    return Account.model_validate_json(path.read_bytes()) if path.exists() else None
