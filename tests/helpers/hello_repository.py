"""A small repository with a package whose test fails until somebody writes the greeting."""

import asyncio
import tempfile
from pathlib import Path

from pointsman.worker.git import git

FILES = {
    ".gitignore": "__pycache__/\n",
    "README.md": "# hello\n\nA package that greets. Its test fails until somebody writes the greeting.\n",
    "hello/__init__.py": "def greeting(name: str) -> str:\n    raise NotImplementedError\n",
    "tests/__init__.py": "",
    "tests/test_hello.py": (
        "import unittest\n\nfrom hello import greeting\n\n\nclass GreetingTest(unittest.TestCase):\n"
        '    def test_greets_by_name(self) -> None:\n        self.assertEqual(greeting("Ada"), "Hello, Ada!")\n'
    ),
}


async def example_repository(parent: Path) -> Path:
    """A fresh repository with a package whose test fails."""
    folder = await asyncio.to_thread(_write_files, parent)
    await git(folder, "init", "-q", "-b", "main")
    await git(folder, "add", "-A")
    await git(folder, "commit", "-q", "-m", "a package that does not greet yet")
    return folder


def _write_files(parent: Path) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="hello-", dir=parent))
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder
