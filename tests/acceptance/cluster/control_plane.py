"""A Kubernetes control plane on loopback: etcd, API server, controllers, scheduler, and nodes that kwok plays."""

import json
import secrets
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.helpers.eventually import eventually_now

STARTED_SECONDS = 120
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "node-1",
        "annotations": {"kwok.x-k8s.io/node": "fake"},
        "labels": {"topology.kubernetes.io/zone": "a", "kubernetes.io/hostname": "node-1"},
    },
    "status": {"allocatable": {"cpu": 64, "memory": "256Gi", "pods": 500}},
}

VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "volume-1"},
    "spec": {
        "capacity": {"storage": "1Ti"},
        "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
        "hostPath": {"path": "/nowhere"},
    },
}
"""What a claim of ours is bound to: there is nothing that makes volumes."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running control plane, by its kubectl."""

    kubectl: Path
    kubeconfig: Path

    def run(self, *arguments: str, given: str = "", check: bool = True) -> "subprocess.CompletedProcess[str]":
        """A kubectl command."""
        command = [str(self.kubectl), "--kubeconfig", str(self.kubeconfig), *arguments]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise SystemExit(f"kubectl {' '.join(arguments)} failed:\n{done.stderr}{done.stdout}")
        return done

    def apply(self, manifests: list[dict[str, Any]], *options: str) -> str:
        """Apply manifests at the server's side, with strict validation; what it complains about, if it does."""
        text = yaml.safe_dump_all(manifests)
        options = ("--server-side", "--validate=strict", *options)
        done = self.run("apply", *options, "-f", "-", given=text, check=False)
        return done.stderr if done.returncode else ""

    def listed(self, kinds: str, namespace: str) -> list[dict[str, Any]]:
        """The objects of some kinds in a namespace, as they are now."""
        answer = self.run("get", kinds, "-n", namespace, "-o", "json").stdout
        found: list[dict[str, Any]] = json.loads(answer)["items"]
        return found


@contextmanager
def control_plane(programs: Path, folder: Path) -> Iterator[Cluster]:
    """Start it in a folder, with one node; everything ends with the block."""
    key = folder / "accounts.key"
    key.write_bytes(_private_key())
    token = secrets.token_hex(16)
    (folder / "tokens.csv").write_text(f"{token},admin,admin,system:masters\n")
    store, peer, port = _free_port(), _free_port(), _free_port()
    cluster = Cluster(programs / "kubectl", _kubeconfig(folder, port, token))
    with ExitStack() as stack:

        def start(name: str, **options: object) -> None:
            words = [f"--{option.replace('_', '-')}={value}" for option, value in options.items()]
            log = stack.enter_context((folder / f"{name}.log").open("w"))
            process = subprocess.Popen([str(programs / name), *words], stdout=log, stderr=log, cwd=folder)
            stack.callback(_end, process)

        at, between = f"http://127.0.0.1:{store}", f"http://127.0.0.1:{peer}"
        start(
            "etcd", data_dir=folder / "etcd", listen_client_urls=at, advertise_client_urls=at, listen_peer_urls=between,
            initial_advertise_peer_urls=between, initial_cluster=f"default={between}", unsafe_no_fsync="true",
        )  # fmt: skip
        start(
            "kube-apiserver", etcd_servers=at, secure_port=port, bind_address="127.0.0.1", cert_dir=folder / "certificates",
            token_auth_file=folder / "tokens.csv", service_account_issuer="https://cluster", authorization_mode="RBAC,Node",
            service_account_key_file=key, service_account_signing_key_file=key, service_cluster_ip_range="10.0.0.0/24",
            disable_admission_plugins="ServiceAccount",
        )  # fmt: skip
        eventually_now(lambda: cluster.run("get", "--raw", "/readyz", check=False).returncode == 0, STARTED_SECONDS)
        config = cluster.kubeconfig
        start("kube-controller-manager", kubeconfig=config, service_account_private_key_file=key, secure_port=0)
        start("kube-scheduler", kubeconfig=config, secure_port=0)
        start("kwok", kubeconfig=config, manage_all_nodes="true", node_lease_duration_seconds=40)
        assert not cluster.apply([NODE, VOLUME])
        yield cluster


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _private_key() -> bytes:
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = serialization.PrivateFormat.TraditionalOpenSSL
    return made.private_bytes(serialization.Encoding.PEM, text, serialization.NoEncryption())


def _kubeconfig(folder: Path, port: int, token: str) -> Path:
    cluster = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "it", "user": {"token": token}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    path.chmod(0o600)
    return path


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
