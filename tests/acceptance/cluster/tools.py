"""Builds the programs of a control plane from the Go module proxy, once, into a folder."""

import json
import re
import subprocess
import tempfile
import tomllib
from pathlib import Path

VERSIONS: dict[str, str] = tomllib.loads((Path(__file__).parent / "versions.toml").read_text())
KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
OTHERS = {
    "etcd": (f"go.etcd.io/etcd/server/v3 v{VERSIONS['etcd']}", "go.etcd.io/etcd/server/v3"),
    "kwok": (f"sigs.k8s.io/kwok v{VERSIONS['kwok']}", "sigs.k8s.io/kwok/cmd/kwok"),
}
"""The module that has to be required for a program, and its package."""
STAGED = re.compile(r"(k8s\.io/[\w-]+) => \./staging")


def built(folder: Path) -> Path:
    """The folder of the programs; what is missing is built, which takes minutes."""
    programs = folder / "-".join(f"{name}{version}" for name, version in sorted(VERSIONS.items()))
    programs.mkdir(parents=True, exist_ok=True)
    for name, (module, package) in OTHERS.items():
        if not (programs / name).exists():
            print(f"building {name} {VERSIONS[name]}", flush=True)
            _build(programs, module, {name: package})
    missing = [name for name in KUBERNETES if not (programs / name).exists()]
    if missing:
        print(
            f"building {', '.join(missing)} {VERSIONS['kubernetes']} (about six minutes on two quiet cores)", flush=True
        )
        _build_kubernetes(programs, missing)
    return programs


def certificate_kinds() -> list[str]:
    """The custom resource definitions of cert-manager, without what its chart fills in."""
    package = f"github.com/cert-manager/cert-manager@v{VERSIONS['cert-manager']}"
    module = json.loads(_go(["mod", "download", "-json", package], Path.cwd()))
    found = sorted(Path(module["Dir"], "deploy", "crds").glob("crd-*.yaml"))
    return [_without_templates(path.read_text()) for path in found]


def _without_templates(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if "{{" not in line)


def _build_kubernetes(programs: Path, names: list[str]) -> None:
    """Kubernetes is no module that others can require: its staging modules are named by their releases."""
    version = VERSIONS["kubernetes"]
    module = json.loads(_go(["mod", "download", "-json", f"k8s.io/kubernetes@v{version}"], programs))
    staged = sorted(set(STAGED.findall(Path(module["GoMod"]).read_text())))
    replaced = "".join(f"\t{name} => {name} v0.{version.partition('.')[2]}\n" for name in staged)
    packages = {name: f"k8s.io/kubernetes/cmd/{name}" for name in names}
    _build(programs, f"k8s.io/kubernetes v{version}", packages, f"replace (\n{replaced})\n")


def _build(programs: Path, module: str, packages: dict[str, str], replaced: str = "") -> None:
    """Builds packages from a module of ours that requires theirs: theirs cannot be installed by name."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "go.mod").write_text(f"module cluster\n\ngo 1.24.0\n\nrequire {module}\n\n{replaced}")
        for name, package in packages.items():
            _go(["build", "-mod=mod", "-o", str(programs / name), package], folder)


def _go(arguments: list[str], folder: Path) -> str:
    """What a command of Go prints; its complaints go to the terminal."""
    done = subprocess.run(["go", *arguments], cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout
