"""The one place where the setting `engine` becomes the place that nodes run in."""

from nightowl.machines.here import ThisMachine
from nightowl.machines.site import Site
from nightowl.machines.spot_site import RentedMachines
from nightowl.settings import Settings


def open_site(settings: Settings) -> Site | None:
    """Where the stages of nights run on nodes; None where the night itself runs them. Nothing is begun.

    Raises:
        SettingsError: for rented machines that nobody described.
    """
    match settings.engine:
        case "local":
            return None
        case "detached":
            return ThisMachine(settings)
        case "ec2":
            return RentedMachines(settings)
