"""States are remembered by what their journal says, and not for ever."""

from pointsman.services.chassis.recent import KEPT, Recent


def test_a_state_is_found_by_the_digest_that_its_journal_has() -> None:
    recent: Recent[str] = Recent()
    recent.keep("e", "d1", "first")
    assert recent.find("e", "d1") == "first"
    assert recent.find("e", "d2") is None
    assert recent.find("other", "d1") is None
    recent.keep("e", "d2", "second")
    assert (recent.find("e", "d1"), recent.find("e", "d2")) == (None, "second")


def test_what_moved_longest_ago_is_forgotten_first() -> None:
    recent: Recent[int] = Recent()
    for number in range(KEPT):
        recent.keep(f"e{number}", "d", number)
    recent.keep("e0", "d", 0)
    recent.keep("one more", "d", -1)
    assert recent.find("e1", "d") is None
    assert recent.find("e0", "d") == 0
    assert recent.find("e2", "d") == 2
