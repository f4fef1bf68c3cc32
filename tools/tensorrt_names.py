"""The names that TensorRT's Python bindings declare, read from their files without loading them: no GPU is needed.

`python -m tools.tensorrt_names SITE SITE` (folders that `pip install --no-deps --target SITE tensorrt-cu13-bindings` filled,
one a version) writes tests/export/tensorrt_names.txt: the names that all of them declare. A test holds our calls to that list.
"""

import re
import struct
import sys
from pathlib import Path

LIST = Path(__file__).resolve().parent.parent / "tests" / "export" / "tensorrt_names.txt"
_NAME = re.compile(rb"\0([A-Za-z_][A-Za-z0-9_]{1,60})(?=\0)")
_DOCUMENTED = re.compile(rb":ivar ([A-Za-z_][A-Za-z0-9_]+):")
_DEFINED = re.compile(r"^(?:def |class )?(\w+)\b(?= = |\(|:)", re.MULTILINE)


def names_in(package: Path) -> set[str]:
    """What the bindings in `package` (a folder tensorrt_bindings) declare: names bound in C++, documented attributes, and what
    the Python part defines."""
    data = _read_only_data((package / "tensorrt.so").read_bytes())
    found = {match.decode() for pattern in (_NAME, _DOCUMENTED) for match in pattern.findall(data)}
    return found | set(_DEFINED.findall((package / "__init__.py").read_text(encoding="utf-8")))


def version_of(package: Path) -> str:
    match = re.search(r'^__version__ = "([\d.]+)"', (package / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    assert match is not None, f"{package}: no __version__"
    return match[1]


def _read_only_data(elf: bytes) -> bytes:
    """The section .rodata of a 64-bit little-endian ELF file, where C++ keeps its texts."""
    (offset,) = struct.unpack_from("<Q", elf, 0x28)
    size, number, names_at = struct.unpack_from("<HHH", elf, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", elf, offset + index * size) for index in range(number)]
    texts = sections[names_at][4]
    for name, _, _, _, start, length in sections:
        if elf[texts + name :].startswith(b".rodata\0"):
            return elf[start : start + length]
    raise ValueError("no section .rodata: not the bindings of TensorRT for Linux")


def main(sites: list[str]) -> None:
    packages = [Path(site) / "tensorrt_bindings" for site in sites]
    common = sorted(set.intersection(*(names_in(package) for package in packages)))
    LIST.write_text("\n".join([f"# declared by {', '.join(map(version_of, packages))}", *common]) + "\n")
    print(f"{LIST.name}: {len(common)} names of {', '.join(map(version_of, packages))}")


if __name__ == "__main__":
    main(sys.argv[1:])
