"""The profiles of known agents can be used as they stand."""

import pytest

from pointsman.profiles import PromptBy, profiles


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "aider", "opencode"])
def test_a_profile_says_how_it_is_told_what_to_do(name: str) -> None:
    profile = profiles()[name]
    placeholder = {PromptBy.ARGUMENT: "{prompt}", PromptBy.FILE: "{prompt_file}"}.get(profile.prompt)
    assert placeholder is None or placeholder in profile.command
    assert profile.about
    assert 0 in profile.success
    assert "HOME" not in profile.environment
    for place in (*profile.login, *profile.settings):
        assert place.startswith(".")
        assert ".." not in place
    assert all(moved.partition("=")[2].startswith(".") for moved in profile.moved_by)
    assert ("{sandbox}" in profile.command) == any(profile.sandbox)
