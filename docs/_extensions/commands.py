"""The command line, from the application itself: each command with its arguments, options and examples.

``.. all-commands::`` makes a section of every command, so that the page can't be behind the code.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any, ClassVar, get_args, get_type_hints

import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ordinalrisk.cli import app as application
from ordinalrisk.cli import options

_CODE = re.compile(r"(--[a-z][a-z-]*|\b[\w*]+\.(?:json|md|html|npz|csv)\b|(?<= )-(?=[;.,]))")


class AllCommands(SphinxDirective):
    """A section for each command."""

    option_spec: ClassVar[Any] = {}

    def run(self) -> list[nodes.Node]:
        """The sections, in the order of ``--help``."""
        callbacks = {found.callback.__name__: found.callback for found in application.registered_commands}
        group: Any = typer.main.get_command(application)
        return [
            self._section(name, command, callbacks[name.replace("-", "_")])
            for name, command in group.commands.items()
        ]

    def _section(self, name: str, command: Any, callback: Any) -> nodes.section:
        section = nodes.section(ids=[f"ordinalrisk-{name}"], names=[f"ordinalrisk {name}"])
        self.state.document.note_explicit_target(section)
        section += nodes.title("", "", nodes.literal("", name))
        about, _, examples = command.help.partition("\b\nExamples:\n")
        for paragraph in about.strip().split("\n\n"):
            section += nodes.paragraph("", "", *_words(" ".join(paragraph.split())))
        lines = inspect.cleandoc(f"\n{examples}")
        section += nodes.literal_block(lines, lines, language="sh", classes=["example"])
        types = get_type_hints(inspect.unwrap(callback))
        arguments = [each for each in command.params if not each.opts[0].startswith("-")]
        options = [each for each in command.params if each.opts[0].startswith("-")]
        for title, parameters in (("Arguments", arguments), ("Options", options)):
            if parameters:
                section += nodes.rubric("", title)
                section += nodes.definition_list(
                    "", *(_item(each, types[each.name]) for each in parameters), classes=["simple", "options"]
                )
        return section


def _item(parameter: Any, kind: Any) -> nodes.definition_list_item:
    choices = [str(choice.value) for choice in _choices(kind)]
    metavar = parameter.metavar or ("|".join(choices) if choices else "" if kind is bool else _kind(kind))
    if parameter.opts[0].startswith("-"):
        names = [*parameter.opts, *parameter.secondary_opts]
        shown = ", ".join(names) + (f" {metavar}" if metavar and not parameter.secondary_opts else "")
    else:
        shown = metavar
    term = nodes.term("", "", nodes.literal("", shown))
    if parameter.required and parameter.opts[0].startswith("-"):
        term += [nodes.Text(" "), nodes.emphasis("", "required")]
    text, default = _default(parameter)
    words = _words(text)
    if default:
        words += [nodes.Text(" Default: "), nodes.literal("", default), nodes.Text(".")]
    return nodes.definition_list_item("", term, nodes.definition("", nodes.paragraph("", "", *words)))


def _default(parameter: Any) -> tuple[str, str]:
    """What the option is for, and its default where it has a plain one."""
    text = re.sub(r" \[default: (.*)\]", r" Default: \1.", options.with_names(parameter.help))
    value = parameter.default
    if value in (None, False, "") or callable(value):
        return text, ""
    return text, str(value.value if isinstance(value, Enum) else value)


def _choices(kind: Any) -> list[Enum]:
    for each in (kind, *get_args(kind)):
        if isinstance(each, type) and issubclass(each, Enum):
            return [*each]
    return []


def _kind(kind: Any) -> str:
    plain = [each for each in (kind, *get_args(kind)) if isinstance(each, type)]
    name = plain[0].__name__ if plain else ""
    return {"int": "N", "Path": "FOLDER"}.get(name, "")


def _words(text: str) -> list[nodes.Node]:
    """The text, with options and file names as code."""
    return list(_marked(text))


def _marked(text: str) -> Iterator[nodes.Node]:
    for i, part in enumerate(_CODE.split(text)):
        if part:
            yield nodes.literal("", part) if i % 2 else nodes.Text(part)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("all-commands", AllCommands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
