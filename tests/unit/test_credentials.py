"""The files of the credentials: made once, private, refused where others could have read or changed them."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pointsman.credentials.console_code import make_code, read_code
from pointsman.credentials.folder import (
    MAX_SOCKET_PATH_BYTES,
    CredentialFolder,
    CredentialRole,
    UnusableCredentials,
)
from pointsman.credentials.tokens import Identity, TokenSource, mint
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.rpc.loopback import INSECURE_WARNING, loopback_credentials, warn_if_insecure

NO_PROCESS = 2**30
"""Larger than any process id of Linux."""
MAKER = """
import sys
import tempfile
from pathlib import Path
from pointsman.credentials.folder import CredentialFolder
CredentialFolder.of(Path(sys.argv[1])).make()
"""


@pytest.fixture
def folder(tmp_path: Path) -> CredentialFolder:
    """Credentials that were just made."""
    made = CredentialFolder.of(tmp_path)
    made.make()
    return made


def contents(folder: CredentialFolder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.path.iterdir() if path.is_file()}


def test_every_role_has_a_secret_of_its_own_that_nobody_else_can_read(folder: CredentialFolder) -> None:
    secrets = {folder.read_secret(role) for role in CredentialRole}
    assert len(secrets) == len(CredentialRole)
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.path.iterdir()} == {0o600}


def test_a_second_start_changes_nothing(folder: CredentialFolder) -> None:
    before = contents(folder)
    folder.make()
    assert contents(folder) == before


def test_many_first_starts_at_once_agree(tmp_path: Path) -> None:
    makers = [subprocess.Popen([sys.executable, "-c", MAKER, str(tmp_path)]) for _ in range(4)]
    assert [maker.wait() for maker in makers] == [0] * 4
    folder = CredentialFolder.of(tmp_path)
    before = contents(folder)
    folder.make()
    assert contents(folder) == before


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602])
def test_a_file_that_others_can_read_or_change_is_refused_with_the_way_out(folder: CredentialFolder, mode: int) -> None:
    path = folder.secret_file(CredentialRole.CODER)
    path.chmod(mode)
    with pytest.raises(UnusableCredentials, match=f"chmod 600 {path}"):
        mint(Identity(folder, CredentialRole.CODER))
    with pytest.raises(UnusableCredentials, match="chmod 600"):
        folder.make()


def test_a_folder_that_others_can_enter_is_refused(folder: CredentialFolder) -> None:
    folder.path.chmod(0o755)
    with pytest.raises(UnusableCredentials, match=f"chmod 700 {folder.path}"):
        mint(Identity(folder, CredentialRole.OPERATOR))


def test_a_key_that_others_can_read_is_refused(folder: CredentialFolder) -> None:
    folder.key.chmod(0o644)
    with pytest.raises(UnusableCredentials, match="chmod 600"):
        folder.make()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_refused(folder: CredentialFolder) -> None:
    os.chown(folder.secret_file(CredentialRole.GATEWAY), 65534, -1)
    with pytest.raises(UnusableCredentials, match="belongs to user 65534"):
        folder.make()


def test_a_link_is_not_followed(folder: CredentialFolder, tmp_path: Path) -> None:
    elsewhere = tmp_path / "known"
    elsewhere.write_text("0" * 64)
    elsewhere.chmod(0o600)
    path = folder.secret_file(CredentialRole.VERIFIER)
    path.unlink()
    path.symlink_to(elsewhere)
    with pytest.raises(UnusableCredentials):
        mint(Identity(folder, CredentialRole.VERIFIER))


def test_a_server_says_in_one_line_what_is_wrong(folder: CredentialFolder, tmp_path: Path) -> None:
    folder.secret_file(CredentialRole.SERVICE).write_text("short\n")
    settings = ServerSettings(insecure_loopback=False)
    with pytest.raises(Refusal, match=r"POINTSMAN_DATA: .*service.secret is damaged; remove it"):
        loopback_credentials(settings, tmp_path)


def test_a_token_is_minted_anew_when_the_secret_has_changed(folder: CredentialFolder) -> None:
    source = TokenSource(Identity(folder, CredentialRole.CODER, "box-1"))
    before = source.value
    assert source.value == before
    folder.rotate(CredentialRole.CODER)
    assert source.value != before


def test_an_agent_is_a_principal_below_its_role_whatever_its_id(folder: CredentialFolder) -> None:
    names = {
        Identity(folder, CredentialRole.CODER, agent_id).principal
        for agent_id in ("", "box-1", "a/b", "ä b", "../verifier")
    }
    assert names == {"coder", "coder/box-1", "coder/a%2Fb", "coder/%C3%A4%20b", "coder/..%2Fverifier"}


@pytest.mark.parametrize("temporary", ["", "x" * 90])
def test_a_socket_of_a_deep_data_directory_lies_in_a_private_folder_elsewhere(
    temporary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / temporary).mkdir(exist_ok=True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / temporary))
    deep = CredentialFolder.of(tmp_path / ("d" * 60) / ("e" * 60))
    deep.make()
    with deep.socket_path() as path:
        assert len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.parent.exists()


def test_sockets_of_dead_processes_are_removed(folder: CredentialFolder) -> None:
    stale, live = folder.path / f"{NO_PROCESS}-aa.sock", folder.path / f"{os.getpid()}-aa.sock"
    stale.touch()
    live.touch()
    with folder.socket_path():
        assert (stale.exists(), live.exists()) == (False, True)


def test_a_console_code_counts_for_its_address_and_its_secret_only() -> None:
    code = make_code(b"secret", "http://127.0.0.1:1")
    assert read_code(b"secret", "http://127.0.0.1:1", code) is not None
    flipped = code[:-2] + ("A" if code[-2] != "A" else "B") + code[-1]
    for secret, address, given in (
        (b"other", "http://127.0.0.1:1", code),
        (b"secret", "http://127.0.0.1:2", code),
        (b"secret", "http://127.0.0.1:1", flipped),
        (b"secret", "http://127.0.0.1:1", ""),
        (b"secret", "http://127.0.0.1:1", "%%%"),
        (b"secret", "http://127.0.0.1:1", "ä" * 46),
    ):
        assert read_code(secret, address, given) is None


def test_a_server_without_credentials_says_so_loudly(capsys: pytest.CaptureFixture[str]) -> None:
    warn_if_insecure(ServerSettings(insecure_loopback=True))
    warn_if_insecure(ServerSettings(insecure_loopback=False))
    assert capsys.readouterr().err == f"{INSECURE_WARNING}\n"
