"""Leased ports: no two assignments have the same ones, in one process or in several."""

import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from pointsman.worker import ports
from pointsman.worker.ports import LOCALHOST, NoPorts, lease_ports, port_variables

HOLDER = """
import sys
from pathlib import Path
from pointsman.worker.ports import lease_ports
with lease_ports(4, Path(sys.argv[1])) as ports:
    print(*ports, flush=True)
    sys.stdin.read()
"""


def test_twenty_trees_at_once_share_no_port(tmp_path: Path) -> None:
    with ExitStack() as held:
        given = [held.enter_context(lease_ports(4, tmp_path)) for _ in range(20)]
        assert len({port for block in given for port in block}) == 80
    with lease_ports(4, tmp_path) as again:
        assert again in given, "what was given back can be leased again"


def test_other_processes_lease_other_ports_and_a_dead_one_holds_none(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = tuple(map(int, other.stdout.readline().split()))
        with lease_ports(4, tmp_path) as ours:
            assert len(theirs) == 4
            assert not set(theirs) & set(ours)
        other.kill()
        other.wait()
    with lease_ports(4, tmp_path) as ours:
        assert ours == theirs


def test_a_block_in_which_somebody_listens_is_passed_over(tmp_path: Path) -> None:
    with lease_ports(2, tmp_path) as free:
        pass
    with socket.socket() as listener:
        listener.bind((LOCALHOST, free[1]))
        listener.listen()
        with lease_ports(2, tmp_path) as given:
            assert not set(given) & set(free)


def test_when_no_block_is_left_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "BLOCKS", 0)
    with pytest.raises(NoPorts, match=r"lower \[workspace\] ports"), lease_ports(1, tmp_path):
        pass


def test_without_ports_nothing_is_leased_or_said(tmp_path: Path) -> None:
    with lease_ports(0, tmp_path) as given:
        assert port_variables(given) == {}
    assert list(tmp_path.iterdir()) == []
    assert port_variables((20000, 20001)) == {"POINTSMAN_PORT_0": "20000", "POINTSMAN_PORT_1": "20001"}
