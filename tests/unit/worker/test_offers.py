"""What a worker says about the repositories that it has checked out."""

from pathlib import Path

from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.worker.git import git
from pointsman.worker.offers import MAX_BRANCHES, CheckedOut, Reach
from pointsman.worker.roles import NOT_BILLED
from tests.unit.worker.repositories import repository


async def test_a_verifier_says_name_branch_head_and_proof_and_nobody_else_does(tmp_path: Path) -> None:
    head = await repository(tmp_path / "shop", {"pointsman.toml": '[proof]\nverify = ["make test"]\n'})
    (tmp_path / "empty").mkdir()
    folders = {"one": tmp_path / "shop", "two": tmp_path / "empty", "three": tmp_path / "removed"}
    reach = Reach(("one",), offers=CheckedOut(folders).offers)
    (offer,) = (await reach.wanted(assignments.CAPABILITY_VERIFY, NOT_BILLED)).repositories
    assert (offer.id, offer.name, offer.branch, offer.head) == ("one", "shop", "main", head)
    assert list(offer.verify) == ["make test"]
    assert not (await reach.wanted(assignments.CAPABILITY_CODE, NOT_BILLED)).repositories
    of_a_run = Reach(("one",), ("run_a",), offers=reach.offers)
    assert not (await of_a_run.wanted(assignments.CAPABILITY_VERIFY, NOT_BILLED)).repositories


async def test_a_repository_without_a_branch_or_with_a_broken_project_file_stops_nothing(tmp_path: Path) -> None:
    head = await repository(tmp_path / "shop", {"a": ""})
    await git(tmp_path / "shop", "checkout", "-q", "--detach")
    await repository(tmp_path / "broken", {"pointsman.toml": "[proof"})
    offer, broken = await CheckedOut({"one": tmp_path / "shop", "two": tmp_path / "broken"}).offers()
    assert (offer.branch, offer.head, list(offer.verify)) == ("", head, [])
    assert [(one.branch, one.commit) for one in offer.branches] == [("main", head)]
    assert ([one.branch for one in broken.branches], list(broken.verify)) == (["main"], [])


async def test_repositories_with_many_branches_share_the_room_of_a_poll(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("one", "two")}
    for folder in folders.values():
        at = await repository(folder, {"a.py": "1\n"})
        refs = "".join(f"create refs/heads/b{number} {at}\n" for number in range(MAX_BRANCHES))
        await git(folder, "update-ref", "--stdin", stdin=refs.encode())
    assert [len(offer.branches) for offer in await CheckedOut(folders).offers()] == [MAX_BRANCHES // 2] * 2
