"""Lists the functions and device variables that a code image defines. Pure.

NVIDIA's images are 64-bit ELF files. The code of a kernel `name` is in the section `.text.name`. `__device__` variables
are in `.nv.global` and `.nv.global.init`, and `__constant__` variables in `.nv.constant3`.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

_HEADER = struct.Struct("<40xQ10xHHH")  # section headers: offset, size, number, index of the section of names
_SECTION = struct.Struct("<IIQQQQII16x")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_SYMBOL_TABLE, _RELOCATIONS, _OBJECT = 2, 4, 1
_VARIABLES = (".nv.global", ".nv.constant3")
_CODE = ".text."


class Section(NamedTuple):
    name: str
    kind: int
    offset: int
    nbytes: int
    link: int
    info: int


class Defined(NamedTuple):
    """The names of functions, and of variables that contain no addresses.

    The loader stores addresses in variables that point to others, and they differ in each process.
    """

    functions: frozenset[str]
    variables: tuple[str, ...]


def defined(image: bytes) -> Defined:
    """Read an image's tables.

    Raises:
        ValueError: it is not an ELF file of 64 bits.
    """
    try:
        return _defined(image)
    except (struct.error, IndexError) as error:
        raise ValueError(f"an image that ends early ({error})") from error


def _defined(image: bytes) -> Defined:
    sections = _sections(image)
    functions = {section.name.removeprefix(_CODE) for section in sections if section.name.startswith(_CODE)}
    addresses = _addresses(image, sections)
    variables: list[str] = []
    for table in sections:
        if table.kind != _SYMBOL_TABLE:
            continue
        names = sections[table.link]
        for at in range(table.offset, table.offset + table.nbytes, _SYMBOL.size):
            name, info, _, section, start, nbytes = _SYMBOL.unpack_from(image, at)
            home = sections[section].name if section < len(sections) else ""
            plain = not any(start <= place < start + nbytes for place in addresses.get(section, ()))
            if info & 15 == _OBJECT and nbytes and home.startswith(_VARIABLES) and plain:
                variables.append(_text(image, names.offset + name))
    return Defined(frozenset(functions), tuple(variables))


def _addresses(image: bytes, sections: list[Section]) -> dict[int, list[int]]:
    """The offsets at which the loader writes addresses, by section."""
    addresses: dict[int, list[int]] = {}
    for table in sections:
        if table.kind == _RELOCATIONS:
            for at in range(table.offset, table.offset + table.nbytes, _RELOCATION.size):
                addresses.setdefault(table.info, []).append(_RELOCATION.unpack_from(image, at)[0])
    return addresses


def _sections(image: bytes) -> list[Section]:
    if image[:5] != b"\x7fELF\x02":
        raise ValueError("not an ELF file of 64 bits")
    start, size, count, naming = _HEADER.unpack_from(image)
    raw = [_SECTION.unpack_from(image, start + k * size) for k in range(count)]
    names = raw[naming][4]
    return [
        Section(_text(image, names + name), kind, offset, nbytes, link, info)
        for name, kind, _, _, offset, nbytes, link, info in raw
    ]


def _text(image: bytes, at: int) -> str:
    return image[at : image.index(b"\0", at)].decode()
