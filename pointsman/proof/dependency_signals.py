"""Signals in manifests and lock files: hosts and plugins of test runners that were not there before."""

import posixpath
import re
from fnmatch import fnmatchcase

FILES = (
    "package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "pyproject.toml", "uv.lock", "poetry.lock",
    "pdm.lock", "Pipfile", "Pipfile.lock", "requirements*.txt", "requirements*.in", "constraints*.txt", "Cargo.toml", "Cargo.lock", "pom.xml",
    "setup.cfg", "tox.ini", "Gemfile", "Gemfile.lock", "composer.lock",
)  # fmt: skip
"""Files that say which packages are installed, and from where."""
REGISTRIES = frozenset(
    {
        "registry.npmjs.org", "registry.yarnpkg.com", "pypi.org", "files.pythonhosted.org", "repo.maven.apache.org", "repo1.maven.org",
        "maven.apache.org", "www.w3.org", "rubygems.org", "packagist.org", "api.github.com", "opencollective.com", "tidelift.com", "feross.org",
    }
)  # fmt: skip
_HOST = re.compile(
    r"""(?:resolved|source|url|index|registry|git|tarball|--(?:extra-)?index-url|--find-links|-[if]\s|@)[^\n]*?"""
    r"""(?:https?|ssh|git)://(?:[^@/\s"']*@)?([\w.-]+)"""
)
_PLUGIN = re.compile(
    r"""(?<![\w.@/-])(pytest[-_][a-z][\w-]*|(?:@jest|@vitest)/[\w-]+|(?:jest|vitest|mocha|karma|nose2?|unittest)-[a-z][\w-]*)"""
)
_CRATES = "github.com/rust-lang/crates.io-index"


def is_looked_at(path: str) -> bool:
    """Whether a file names dependencies."""
    return any(fnmatchcase(posixpath.basename(path), name) for name in FILES)


def new_host(added: str, before: str) -> str:
    """The first host in added lines that the file did not name before and that is no public registry."""
    hosts = (match[1] for match in _HOST.finditer(added.replace(_CRATES, "")))
    return next((host for host in hosts if host not in REGISTRIES and host not in before), "")


def new_plugin(added: str, before: str) -> str:
    """The first plugin of a test runner in added lines that the file did not name before."""
    return next((name for name in _PLUGIN.findall(added) if name not in before), "")
