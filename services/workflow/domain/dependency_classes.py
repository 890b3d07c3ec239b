"""Infers the external dependencies of a task from the words in its name and the folders of its files."""

import re

from pointsman.services.workflow.domain.tasks import TaskSpec

API_SPEC = "api_spec"
DESIGN_SPEC = "design_spec"
DEPENDENCY_CLASSES = (API_SPEC, DESIGN_SPEC)

_API_WORDS = frozenset({"api", "apis", "service", "services", "fetch", "request", "requests", "http", "https"})
_API_CHARACTERS = ("接口", "服务层")
_API_FOLDERS = ("services/", "api/", "http/")
_DESIGN_WORDS = frozenset({"ui"})
_DESIGN_CHARACTERS = ("样式", "组件", "还原", "视觉", "布局", "卡片", "弹窗", "表单")
_DESIGN_SUFFIXES = (".vue", ".tsx", ".jsx", ".css", ".scss")
_DESIGN_FOLDERS = ("components/", "pages/", "views/")
_SKELETON_WORDS = frozenset({"skeleton", "mock", "stub"})
_SKELETON_CHARACTERS = ("骨架",)
_LATIN_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def classify_dependencies(spec: TaskSpec) -> tuple[str, ...]:
    """The inferred dependencies of a task, in the order of DEPENDENCY_CLASSES."""
    words = latin_words(spec.name)
    found = []
    if words & _API_WORDS or _holds(spec.name, _API_CHARACTERS) or _in_folder(spec.files, _API_FOLDERS):
        found.append(API_SPEC)
    if _looks_designed(spec, words) and not (words & _SKELETON_WORDS or _holds(spec.name, _SKELETON_CHARACTERS)):
        found.append(DESIGN_SPEC)
    return tuple(found)


def latin_words(text: str) -> frozenset[str]:
    """The Latin words of a text in lower case; `userService`, `user-service` and `HTTPClient` are two words each."""
    return frozenset(word.lower() for word in _LATIN_WORD.findall(text))


def _looks_designed(spec: TaskSpec, words: frozenset[str]) -> bool:
    return (
        bool(words & _DESIGN_WORDS)
        or _holds(spec.name, _DESIGN_CHARACTERS)
        or any(file.lower().endswith(_DESIGN_SUFFIXES) for file in spec.files)
        or _in_folder(spec.files, _DESIGN_FOLDERS)
    )


def _holds(text: str, fragments: tuple[str, ...]) -> bool:
    return any(fragment in text for fragment in fragments)


def _in_folder(files: tuple[str, ...], folders: tuple[str, ...]) -> bool:
    return any(folder in file.lower() for file in files for folder in folders)
