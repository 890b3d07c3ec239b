"""Leased ports: no two assignments have the same ones, in one process or in several."""

import os
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


def test_a_folder_of_locks_that_somebody_else_made_is_not_used(tmp_path: Path) -> None:
    theirs, elsewhere = tmp_path / "theirs", tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    theirs.symlink_to(elsewhere)
    with (
        pytest.raises(NoPorts, match="not a folder of this user alone; remove it, or set TMPDIR"),
        lease_ports(1, theirs),
    ):
        pass
    elsewhere.chmod(0o777)
    with pytest.raises(NoPorts, match="not a folder of this user alone"), lease_ports(1, elsewhere):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a folder of another user")
def test_a_folder_of_locks_that_belongs_to_another_user_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir(mode=0o700)
    os.chown(tmp_path / "theirs", 12345, 12345)
    with pytest.raises(NoPorts, match="not a folder of this user alone"), lease_ports(1, tmp_path / "theirs"):
        pass


def test_a_link_in_the_place_of_a_lock_is_not_followed(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / str(ports.FIRST_PORT)).symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"), lease_ports(1, tmp_path):
        pass
    assert not (tmp_path / "victim").exists()
