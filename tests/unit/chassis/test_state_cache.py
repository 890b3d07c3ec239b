"""States are remembered by what their journal says, and not for ever."""

from pointsman.services.chassis.engine.state_cache import MAX_ENTRIES, StateCache


def test_a_state_is_found_by_the_digest_that_its_journal_has() -> None:
    recent: StateCache[str] = StateCache()
    recent.put("e", "d1", "first")
    assert recent.get("e", "d1") == "first"
    assert recent.get("e", "d2") is None
    assert recent.get("other", "d1") is None
    recent.put("e", "d2", "second")
    assert (recent.get("e", "d1"), recent.get("e", "d2")) == (None, "second")


def test_what_moved_longest_ago_is_forgotten_first() -> None:
    recent: StateCache[int] = StateCache()
    for number in range(MAX_ENTRIES):
        recent.put(f"e{number}", "d", number)
    recent.put("e0", "d", 0)
    recent.put("one more", "d", -1)
    assert recent.get("e1", "d") is None
    assert recent.get("e0", "d") == 0
    assert recent.get("e2", "d") == 2
