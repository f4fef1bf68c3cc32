"""What a night's rented machines did and cost, kept beside its report and in its bundle."""

from functools import partial
from pathlib import Path

from nightowl.cloud.ec2_session import Aws
from nightowl.files import write_record
from nightowl.machines.account import Account, account_of
from nightowl.machines.board import Board
from nightowl.machines.price import read_prices
from nightowl.machines.reach import machines_of
from nightowl.night.record import Night, settings_of


def account_file(night: Night) -> Path:
    """Where the account is, or will be."""
    return night.folder / "machines.json"


def keep_account(night: Night, board: Board) -> Account | None:
    """Write the account of the run on `board` down for the night. Prices that AWS does not tell are unknown in it."""
    machines = machines_of(settings_of(night))
    account = account_of(board, partial(read_prices, Aws(machines.region, machines.endpoint_ec2)))
    if account is not None:
        write_record(account_file(night), account)
    return account


def rented_by(night: Night) -> Account | None:
    """The account of the night's machines; None for a night that ran here."""
    path = account_file(night)
    return Account.model_validate_json(path.read_bytes()) if path.exists() else None
