"""Scripts of the repository that belong to no package, as modules."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def script(path: str) -> Iterator[ModuleType]:
    """A script, beside the ones that it imports."""
    folder, name = (ROOT / path).parent, Path(path).stem
    shadowed = sys.modules.pop(name, None)
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(name, None)
        if shadowed is not None:
            sys.modules[name] = shadowed
