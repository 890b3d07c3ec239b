"""A transcript: no secret gets through, whatever the pieces it is printed in; the whole is kept within bounds."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman.worker.transcript import MAX_HEAD, MAX_PIECE_BYTES, MAX_PIECES, MAX_TAIL, Transcript

TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ"
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA7b\n" * 20 + "-----END RSA PRIVATE KEY-----\n"
TEXT = f"begin ü 漢\ntoken {TOKEN} here\n{KEY}end, with my-own-value in it"


def printed(pieces: list[bytes], *secrets: str) -> tuple[str, str]:
    """What is sent while the pieces come, and what is kept in the end."""
    transcript = Transcript()
    transcript.hide(secrets)
    sent = ""
    for piece in pieces:
        transcript.write(piece)
        sent += _joined(transcript, len(sent))
    transcript.close()
    return sent + _joined(transcript, len(sent)), transcript.body().decode()


def _joined(transcript: Transcript, length: int) -> str:
    pieces = transcript.take()
    for offset, text in pieces:
        assert offset == length
        assert len(text.encode()) <= MAX_PIECE_BYTES
        length += len(text)
    return "".join(text for _, text in pieces)


@settings(deadline=None)
@given(st.lists(st.integers(0, len(TEXT.encode())), max_size=12))
def test_however_it_is_cut_no_secret_is_sent_or_kept(cuts: list[int]) -> None:
    data, places = TEXT.encode(), [0, *sorted(cuts), len(TEXT.encode())]
    pieces = [data[start:end] for start, end in pairwise(places)]
    sent, kept = printed(pieces, "my-own-value")
    assert sent == kept
    for secret in (TOKEN, "MIIEpAIB", "my-own-value"):
        assert secret not in sent
    assert sent.startswith("begin ü 漢\ntoken *** here\n")
    assert sent.endswith("end, with *** in it")


def test_of_a_flood_the_beginning_and_the_end_are_kept() -> None:
    transcript = Transcript()
    for number in range(400):
        transcript.write(f"{number:05}{'x' * 4090}\n".encode())
    transcript.close()
    body = transcript.body().decode()
    assert body.startswith("00000")
    assert body.rstrip().endswith("x")
    assert "00399" in body[-5000:]
    assert f"[… {400 * 4096 - MAX_HEAD - MAX_TAIL} characters are left out …]" in body
    assert len(body) < MAX_HEAD + MAX_TAIL + 100


def test_of_more_than_can_be_sent_at_once_the_end_is_sent_with_its_place() -> None:
    transcript = Transcript()
    transcript.write(b"x" * 99_999 + b"\n")
    pieces = transcript.take()
    assert len(pieces) == MAX_PIECES
    assert pieces[0][0] == 100_000 - MAX_PIECES * MAX_PIECE_BYTES
    assert pieces[-1][0] + len(pieces[-1][1]) == 100_000
    assert transcript.take() == []


@pytest.mark.parametrize("letter", ["ü", "漢", "🚂"])
def test_wide_letters_are_cut_into_pieces_that_fit(letter: str) -> None:
    sent, kept = printed([(letter * 9000 + "\n").encode()])
    assert sent == kept == letter * 9000 + "\n"


def test_a_line_without_an_end_is_sent_before_it_is_endless() -> None:
    transcript = Transcript()
    transcript.write(b"." * 100)
    assert not transcript.has_unsent
    transcript.write(b"." * 10_000)
    assert transcript.has_unsent


def test_bytes_that_are_no_text_and_nul_do_no_harm() -> None:
    sent, kept = printed([b"\xff\xfe\x00ok\n"])
    assert sent == kept == "\ufffd\ufffdok\n"
