"""Who gets links that answer: receivers that the operator names, never one that merged work may have put into the file."""

from pathlib import Path

import pytest

from pointsman.cli.session.notifying import notifier_for
from pointsman.credentials.folder import CredentialFolder
from pointsman.project.model import NotifySection

SECTION = NotifySection(webhook="http://127.0.0.1:1/hook", console="http://127.0.0.1:2")


def test_only_a_receiver_that_the_operator_names_gets_links_that_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTSMAN_DATA", str(tmp_path))
    CredentialFolder.of(tmp_path).make()
    assert notifier_for(SECTION, (), "local", with_answers=True).offer is not None
    assert notifier_for(SECTION, (), "local", with_answers=False).offer is None
