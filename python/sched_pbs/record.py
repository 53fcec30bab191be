# SPDX-License-Identifier: GPL-2.0
"""Records: dataclasses that are read from JSON and TOML, and written as JSON.

The keys of a file are the names of the fields, unless ``KEYS`` has another one.  The types of
the fields decide what is accepted.
"""

import contextvars
import dataclasses
import difflib
import json
import pathlib
import tomllib
import types
import typing
from typing import Any, ClassVar, Self

from .quantity import number_of


_IGNORES_UNKNOWN = contextvars.ContextVar("ignores_unknown", default=False)
"""Whether keys that are not known are ignored."""


class FileError(ValueError):
    """Content that is no plan, job, graph or machine, with its place and its remedy."""


@dataclasses.dataclass
class Record:
    """Base of all records of files."""

    # Keys of files whose field has another name.
    KEYS: ClassVar[dict[str, str]] = {}
    # Field that a plain value stands for where the record has nothing else.
    SHORT: ClassVar[str | None] = None
    # Keys of which a file has one at least; empty: the fields without a default suffice.
    MARKS: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def of_message(cls, value: object, where: str = "") -> Self:
        """Record of what pbsctl or a service says, which may be of a later version.

        Keys that are not known are ignored.
        """
        before = _IGNORES_UNKNOWN.set(True)
        try:
            return cls.from_json(value, where)
        finally:
            _IGNORES_UNKNOWN.reset(before)

    @classmethod
    def from_json(cls, value: object, where: str = "") -> Self:
        """Record of decoded JSON or TOML; ``where`` is its place in messages."""
        where = where or f"the {cls.__name__.lower()}"
        if cls.SHORT is not None and not isinstance(value, dict):
            value = {cls.KEYS.get(cls.SHORT, cls.SHORT): value}
        if not isinstance(value, dict):
            raise FileError(f"{where} is {value!r}; write an object with keys and values")
        fields = _fields(cls)
        arguments = {}
        for key, part in value.items():
            if key not in fields:
                if _IGNORES_UNKNOWN.get():
                    continue
                close = difflib.get_close_matches(str(key), fields, 1)
                instead = (
                    f"did you mean {close[0]}?" if close else f"it can have {', '.join(fields)}"
                )
                raise FileError(f"{where} has no key {key}; {instead}")
            name, hint = fields[key]
            arguments[name] = _decoded(hint, part, name, f"{key} of {where}")
        for field in dataclasses.fields(cls):
            has_default = (
                field.default is not dataclasses.MISSING
                or field.default_factory is not dataclasses.MISSING
            )
            if field.name not in arguments and not has_default:
                raise FileError(f"{where} has no {cls.KEYS.get(field.name, field.name)}; add it")
        return cls(**arguments)

    def to_json(self) -> dict[str, Any]:
        """Object that ``json.dump`` writes; fields with their default are left out."""
        out = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.default_factory is not dataclasses.MISSING:
                default: object = field.default_factory()
            else:
                default = field.default
            if value is None or value == default:
                continue
            out[self.KEYS.get(field.name, field.name)] = _encoded(value)
        return out

    def dumps(self) -> str:
        """JSON text in which each key has a line of its own, which messages of pbsctl name."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"

    def dumps_toml(self) -> str:
        """TOML text, for interfaces that take no JSON."""
        lines = (f"{_toml(key)} = {_toml(value)}\n" for key, value in self.to_json().items())
        return "".join(lines)

    @classmethod
    def loads(cls, text: str) -> Self:
        """Record of a text in JSON or TOML."""
        try:
            value = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
        except ValueError as error:
            raise FileError(f"this is neither JSON nor TOML: {error}") from error
        record = cls.from_json(value)
        if cls.MARKS and not any(value.get(key) for key in cls.MARKS):
            what = cls.__name__.lower()
            what = f"this is no {what}" if value else f"this is empty, and no {what}"
            raise FileError(f"{what}; it needs {' and '.join(cls.MARKS)}")
        return record

    @classmethod
    def read(cls, file: str | pathlib.Path) -> Self:
        """Record of a file in JSON or TOML."""
        try:
            return cls.loads(pathlib.Path(file).read_text(encoding="utf-8"))
        except FileError as error:
            raise FileError(f"{file}: {error}") from error

    def write(self, file: str | pathlib.Path) -> None:
        """Write the record as a JSON file."""
        pathlib.Path(file).write_text(self.dumps(), encoding="utf-8")


_FIELDS: dict[type[Record], dict[str, tuple[str, Any]]] = {}


def _fields(cls: type[Record]) -> dict[str, tuple[str, Any]]:
    """Name and type of the field of each key."""
    if cls not in _FIELDS:
        hints = typing.get_type_hints(cls)
        names = [field.name for field in dataclasses.fields(cls)]
        _FIELDS[cls] = {cls.KEYS.get(name, name): (name, hints[name]) for name in names}
    return _FIELDS[cls]


def _kinds(hint: Any) -> list[Any]:
    """Alternatives of a type, without None."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return [kind for kind in typing.get_args(hint) if kind is not type(None)]
    return [hint]


def _accepts(kind: Any, value: object) -> bool:
    """Whether a value has the JSON type by which a kind is written."""
    origin = typing.get_origin(kind) or kind
    if origin is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(origin, type) and issubclass(origin, Record):
        return isinstance(value, dict) or origin.SHORT is not None
    return isinstance(value, origin)


def _decoded(hint: Any, value: object, name: str, where: str) -> Any:
    """Value of a field; text with a unit becomes a number where the type has only that."""
    kinds = _kinds(hint)
    if kinds == [int] and isinstance(value, str):
        try:
            return number_of(name, value)
        except ValueError as error:
            raise FileError(f"{where}: {error}") from error
    fitting = [kind for kind in kinds if _accepts(kind, value)]
    if not fitting:
        names = " or ".join(_named(kind) for kind in kinds)
        raise FileError(f"{where} is {value!r}; write {names}")
    kind = fitting[0]
    if typing.get_origin(kind) is list:
        (item,) = typing.get_args(kind)
        assert isinstance(value, list)
        return [_decoded(item, part, name, f"{where}[{at}]") for at, part in enumerate(value)]
    if isinstance(kind, type) and issubclass(kind, Record):
        return kind.from_json(value, where)
    return value


def _named(kind: Any) -> str:
    names = {int: "a whole number", str: "a text", bool: "true or false"}
    if typing.get_origin(kind) is list:
        return "a list"
    return names.get(kind, "an object")


def _toml(value: Any) -> str:
    """Value in TOML, on one line."""
    if isinstance(value, dict):
        pairs = (f"{_toml(key)} = {_toml(part)}" for key, part in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    # Numbers, truth values and texts are those of JSON; TOML wants this character escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _encoded(value: Any) -> Any:
    if isinstance(value, Record):
        out = value.to_json()
        if value.SHORT is not None:
            key = value.KEYS.get(value.SHORT, value.SHORT)
            if set(out) == {key}:
                return out[key]
        return out
    if isinstance(value, list):
        return [_encoded(item) for item in value]
    return value
