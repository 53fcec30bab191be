# SPDX-License-Identifier: GPL-2.0
"""The part of JSON Schema (draft 2020-12) that the schemas of the project use."""

import json
import re
from typing import Any

from .common import TOP

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}
ANNOTATIONS = {"$schema", "$id", "$defs", "title", "description", "default"}


class Invalid(ValueError):
    """Value that a schema does not describe, with its place."""


class Schemas:
    """All schemas of the project."""

    def __init__(self) -> None:
        files = sorted((TOP / "schemas").glob("*.schema.json"))
        documents = [json.loads(file.read_text(encoding="utf-8")) for file in files]
        self.by_id = {document["$id"]: document for document in documents}

    def named(self, name: str) -> dict[str, Any]:
        document: dict[str, Any] = self.by_id[f"urn:sched-pbs:schema:{name}:1"]
        return document

    def validate(self, name: str, value: object) -> None:
        """Raise Invalid if the schema of that name does not describe the value."""
        self._check(self.named(name), self.named(name), value, name)

    def accepts(self, name: str, value: object) -> bool:
        """Whether the schema of that name describes the value."""
        return self._accepts(self.named(name), self.named(name), value, name)

    def _check(self, document: Any, schema: dict[str, Any], value: Any, at: str) -> None:
        for keyword, rule in schema.items():
            if keyword not in ANNOTATIONS and not self._holds(
                document, schema, keyword, rule, value, at
            ):
                raise Invalid(f"{at}: {value!r} against {keyword}: {json.dumps(rule)}")

    def _holds(
        self, document: Any, schema: dict[str, Any], keyword: str, rule: Any, value: Any, at: str
    ) -> bool:
        number = value if isinstance(value, int) and not isinstance(value, bool) else None
        items = value if isinstance(value, list) else []
        keys = value if isinstance(value, dict) else {}
        match keyword:
            case "$ref":
                self._check(*self._referred(document, rule), value, at)
                return True
            case "anyOf":
                return any(self._accepts(document, part, value, at) for part in rule)
            case "type":
                is_flag = isinstance(value, bool)
                return isinstance(value, TYPES[rule]) and (not is_flag or rule == "boolean")
            case "enum":
                return any(value == part for part in rule)
            case "minimum":
                return number is None or bool(number >= rule)
            case "maximum":
                return number is None or bool(number <= rule)
            case "pattern":
                return not isinstance(value, str) or re.search(rule, value) is not None
            case "minLength":
                return not isinstance(value, str) or bool(len(value) >= rule)
            case "maxLength":
                return not isinstance(value, str) or bool(len(value) <= rule)
            case "maxProperties":
                return bool(len(keys) <= rule)
            case "propertyNames":
                for key in keys:
                    self._check(document, rule, key, f"{at}/{key}")
                return True
            case "minItems":
                return not isinstance(value, list) or bool(len(items) >= rule)
            case "maxItems":
                return bool(len(items) <= rule)
            case "uniqueItems":
                return len({json.dumps(item) for item in items}) == len(items)
            case "items":
                for place, item in enumerate(items):
                    self._check(document, rule, item, f"{at}/{place}")
                return True
            case "required":
                return not isinstance(value, dict) or all(key in keys for key in rule)
            case "properties":
                for key, part in keys.items():
                    if key in rule:
                        self._check(document, rule[key], part, f"{at}/{key}")
                return True
            case "additionalProperties" if isinstance(rule, dict):
                for key in set(keys) - set(schema.get("properties", ())):
                    self._check(document, rule, keys[key], f"{at}/{key}")
                return True
            case "additionalProperties":
                return bool(rule) or set(keys) <= set(schema["properties"])
        raise AssertionError(f"{at}: the validator does not have the keyword {keyword}")

    def _accepts(self, document: Any, schema: dict[str, Any], value: Any, at: str) -> bool:
        try:
            self._check(document, schema, value, at)
        except Invalid:
            return False
        return True

    def _referred(self, document: Any, reference: str) -> tuple[Any, Any]:
        id_, _, pointer = reference.partition("#")
        document = self.by_id[id_] if id_ else document
        schema = document
        for part in pointer.split("/")[1:]:
            schema = schema[part]
        return document, schema
