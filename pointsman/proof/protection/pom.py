"""Splits a Maven pom.xml by element."""

from collections.abc import Sequence
from copy import deepcopy
from fnmatch import fnmatchcase
from xml.etree import ElementTree

Element = ElementTree.Element


def split(
    base: bytes | None, delivered: bytes, base_keys: Sequence[str], dependency_keys: Sequence[str]
) -> tuple[bytes, tuple[str, ...], tuple[str, ...], bool]:
    """The merged document, protected elements and dependencies that differed, and whether anything else did."""
    after = _parse(delivered)
    before = _parse(base) if base is not None else Element(after.tag)
    protected = tuple(key for key in base_keys if _differ(before, after, key))
    dependencies = tuple(key for key in dependency_keys if _differ(before, after, key))
    for key in protected:
        _lay(before, after, key)
    content = ElementTree.tostring(after, encoding="utf-8", xml_declaration=True) if protected else delivered
    return content, protected, dependencies, _text([before]) != _text([after])


def _parse(data: bytes) -> Element:
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise ValueError("it declares entities")
    try:
        return ElementTree.fromstring(data)  # noqa: S314 - without a document type there is nothing to expand
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from None


def _local(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _children(parent: Element | None, pattern: str) -> list[Element]:
    return [child for child in parent if fnmatchcase(_local(child), pattern)] if parent is not None else []


def _parent(root: Element, key: str) -> tuple[Element | None, str]:
    """The element that holds a key: the root, or the one that the first word names (`properties.skip*`)."""
    first, _, rest = key.partition(".")
    return (next(iter(_children(root, first)), None), rest) if rest else (root, key)


def _text(elements: Sequence[Element]) -> list[bytes]:
    return sorted(ElementTree.canonicalize(ElementTree.tostring(one), strip_text=True).encode() for one in elements)


def _differ(before: Element, after: Element, key: str) -> bool:
    (left, pattern), (right, _) = _parent(before, key), _parent(after, key)
    return _text(_children(left, pattern)) != _text(_children(right, pattern))


def _lay(before: Element, after: Element, key: str) -> None:
    (left, pattern), (right, _) = _parent(before, key), _parent(after, key)
    if right is None:
        assert left is not None
        right = ElementTree.SubElement(after, left.tag)
    for child in _children(right, pattern):
        right.remove(child)
    right.extend(deepcopy(_children(left, pattern)))
