"""What a shared library is for, what it offers and what it asks for: ELF, Mach-O and PE."""

import struct
from typing import NamedTuple


class Library(NamedTuple):
    """A shared library as its headers describe it."""

    processor: str
    exports: set[str]
    needed: set[str]
    """Libraries that it loads."""
    versions: set[str]
    """Versions of symbols that it asks for (ELF), or the oldest system it runs on (Mach-O)."""


def read_library(data):
    """The library in these bytes."""
    if data[:4] == b"\x7fELF":
        return _elf(data)
    if data[:4] == b"\xcf\xfa\xed\xfe":
        return _mach_o(data)
    assert data[:2] == b"MZ", data[:4]
    return _pe(data)


def _text(data, at):
    return data[at : data.index(b"\0", at)].decode()


def _elf(data):
    machine = {62: "x86_64", 183: "aarch64"}[struct.unpack_from("<H", data, 18)[0]]
    first, size, count = *struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, first + size * i) for i in range(count)]
    exports, needed, versions = set(), set(), set()
    for _, kind, _, _, start, length, link, info, _, entry in sections:
        texts = sections[link][4] if link < count else 0
        if kind == 11:  # dynamic symbols
            for at in range(start, start + length, entry):
                name, flags, _, section = struct.unpack_from("<IBBH", data, at)
                if section and flags >> 4 == 1:  # defined here, and global
                    exports.add(_text(data, texts + name))
        elif kind == 6:  # dynamic
            for at in range(start, start + length, entry):
                tag, value = struct.unpack_from("<QQ", data, at)
                if tag == 1:
                    needed.add(_text(data, texts + value))
        elif kind == 0x6FFFFFFE:  # versions needed
            at = start
            for _ in range(info):
                _, n_versions, _, aux, next_ = struct.unpack_from("<HHIII", data, at)
                here = at + aux
                for _ in range(n_versions):
                    _, _, _, name, step = struct.unpack_from("<IHHII", data, here)
                    versions.add(_text(data, texts + name))
                    here += step
                at += next_
    return Library(machine, exports, needed, versions)


def _mach_o(data):
    processor = {0x01000007: "x86_64", 0x0100000C: "aarch64"}[struct.unpack_from("<I", data, 4)[0]]
    exports, needed, versions = set(), set(), set()
    at = 32
    for _ in range(struct.unpack_from("<I", data, 16)[0]):
        command, size = struct.unpack_from("<II", data, at)
        if command == 0xC:  # load a library
            needed.add(_text(data, at + struct.unpack_from("<I", data, at + 8)[0]))
        elif command == 0x32:  # built for
            oldest = struct.unpack_from("<I", data, at + 12)[0]
            versions.add(f"{oldest >> 16}.{oldest >> 8 & 255}")
        elif command == 2:  # symbols
            symbols, count, texts, _ = struct.unpack_from("<IIII", data, at + 8)
            for i in range(count):
                name, kind = struct.unpack_from("<IB", data, symbols + 16 * i)
                if kind & 0x0F == 0x0F and not kind & 0x10:  # in a section, external, and not private to it
                    exports.add(_text(data, texts + name).removeprefix("_"))
        at += size
    return Library(processor, exports, needed, versions)


def _pe(data):
    start = struct.unpack_from("<I", data, 0x3C)[0]
    machine, n_sections, _, _, _, size = struct.unpack_from("<HHIIIH", data, start + 4)
    header = start + 24
    sections = [
        struct.unpack_from("<IIII", data, header + size + 40 * i + 8) for i in range(n_sections)
    ]  # memory size, address, file size, place in the file

    def place(address):
        for memory, first, length, raw in sections:
            if first <= address < first + max(memory, length):
                return raw + address - first
        raise AssertionError(address)

    export_table, import_table = (struct.unpack_from("<I", data, header + 112 + 8 * i)[0] for i in range(2))
    at = place(export_table)
    n_names, _, names = struct.unpack_from("<III", data, at + 24)
    exports = {
        _text(data, place(struct.unpack_from("<I", data, place(names) + 4 * i)[0])) for i in range(n_names)
    }
    needed, at = set(), place(import_table)
    while name := struct.unpack_from("<I", data, at + 12)[0]:
        needed.add(_text(data, place(name)))
        at += 20
    return Library({0x8664: "x86_64", 0xAA64: "aarch64"}[machine], exports, needed, set())
