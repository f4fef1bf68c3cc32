"""What the documents say exists, exists: commands, options, targets, settings, files, tests."""

import re
from pathlib import Path

import pytest
import typer

from nightowl.cli import app
from nightowl.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
COMMANDS = typer.main.get_command(app)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def options(words: list[str]) -> set[str] | None:
    """The options of the command that the words lead to; None where they lead nowhere. Words after a command are its own."""
    found = COMMANDS
    while hasattr(found, "commands"):
        if not words or words[0] not in found.commands:
            return None
        found = found.commands[words.pop(0)]
    return {option for parameter in found.params for option in parameter.opts}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_nightowl_command_that_a_page_shows_exists_with_its_options(page: Path) -> None:
    text = page.read_text()
    code = "\n".join([*re.findall(r"```\w*\n(.*?)```", text, re.DOTALL), *re.findall(r"`([^`]+)`", text)])
    shown = re.findall(r"(?m)(?:^|&& |; )nightowl ((?:[a-z-]+ ?)+)([^#\n]*)", code)
    for words, rest in shown:
        known = options(words.split())
        assert known is not None, f"{name_of(page)}: nightowl {words}{rest}"
        used = re.findall(r"(?<!\w)--[a-z-]+", words + rest)
        assert set(used) <= known, f"{name_of(page)}: nightowl {words}{rest}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_and_make_target_of_a_page_exists(page: Path) -> None:
    text = page.read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (page.parent / target).exists(), f"{name_of(page)}: {target}"
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:^|`)make ([a-z]+)", text, re.MULTILINE):
        assert f"\n{target}:" in makefile, f"{name_of(page)}: make {target}"


def test_the_readme_leads_to_every_page() -> None:
    linked = set(re.findall(r"\]\((docs/[^)/]+\.md)\)", (ROOT / "README.md").read_text().partition("## Further")[2]))
    assert linked == {f"docs/{page.name}" for page in ROOT.glob("docs/*.md")}


def test_the_page_of_settings_names_each_with_no_other() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/settings.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(Settings.model_fields)


def test_every_test_that_a_guarantee_names_is_there() -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", (ROOT / "docs/guarantees.md").read_text())
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_make_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^\.PHONY: (\w+)$", makefile, re.MULTILINE)
    assert [name for name in targets if not re.search(rf"^{name}:.*## \S", makefile, re.MULTILINE)] == []


def test_no_committed_file_names_a_package_registry() -> None:
    hosts = re.compile(r"py" + r"pi\.org|python" + r"hosted|registry\.npm" + r"js|deb\.deb" + r"ian\.org")
    suffixes = {".py", ".md", ".toml", ".yaml", ".lock", ".txt", ".cfg", ".j2"}
    files = [path for path in ROOT.rglob("*") if path.suffix in suffixes and ".venv" not in path.parts and path.is_file()]
    named = [str(path.relative_to(ROOT)) for path in files if hosts.search(path.read_text(errors="replace"))]
    assert [path for path in named if not path.startswith((".nightowl", ".uv", "out", "inputs"))] == []
