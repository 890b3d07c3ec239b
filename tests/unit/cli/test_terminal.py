"""What agents write cannot steer the terminal of whoever reads it."""

import io
import subprocess
import sys

import pytest

from pointsman.cli.render.terminal import HarmlessStream, harmless

CLIPBOARD, TITLE, UP_AND_ERASE = "\x1b]52;c;ZXZpbA==\x07", "\x1b]0;mine\x07", "\x1b[2A\x1b[2K"


@pytest.mark.parametrize("steering", [CLIPBOARD, TITLE, UP_AND_ERASE, "\rGREEN", "\x9b2J", "\x1b[8m", "\u202egnp.exe"])
def test_nothing_moves_hides_reorders_or_talks_to_the_terminal(steering: str) -> None:
    shown = harmless(f"REFUSED{steering}PROVEN")
    assert not set(shown) & set("\x1b\x07\r\x9b\u202e")
    assert shown.startswith("REFUSED\ufffd")


def test_lines_tabs_letters_and_colours_stay_and_a_colour_ends_with_its_text() -> None:
    assert harmless("a\tb\nä – 漢 🙂\n") == "a\tb\nä – 漢 🙂\n"
    assert harmless("\x1b[1;31mred\x1b[0m") == "\x1b[1;31mred\x1b[0m"
    assert harmless("\x1b[30mblack on black") == "\x1b[30mblack on black\x1b[0m"


def test_a_stream_prints_harmless_text_and_is_the_same_otherwise() -> None:
    behind = io.StringIO()
    stream = HarmlessStream(behind)
    print("one", TITLE, file=stream)
    stream.writelines(["two\n", "\rthree\n"])
    assert behind.getvalue() == "one \ufffd]0;mine\ufffd\ntwo\n\ufffdthree\n"
    assert stream.isatty() is False  # type: ignore[operator]


def test_every_command_prints_through_it() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pointsman.cli", "answer", "run_1", f"no{TITLE}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "\x1b]0;" not in done.stdout + done.stderr
    assert "mine" in done.stdout + done.stderr
