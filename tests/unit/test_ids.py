"""Names, the nearest name, and the digest that checkpoints hang on."""

from __future__ import annotations

import pytest

from headrace.ids import did_you_mean, fingerprint, is_name, nearest


@pytest.mark.parametrize("name", ["a", "_", "readings", "plug_avg_1m", "site-2", "A1", "x" * 64])
def test_legal_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "1a", "-a", "a b", "a.b", "a/b", "../a", "a\n", "é", "x" * 65])
def test_names_that_could_leave_a_folder_or_a_line_are_refused(name: str) -> None:
    assert not is_name(name)


def test_nearest_finds_a_slip_of_the_hand_whatever_the_case() -> None:
    assert nearest("READNIGS", ["readings", "switches"]) == "readings"
    assert nearest("readings", ["Readings"]) == "Readings"
    assert nearest("bids", ["readings", "switches"]) is None
    assert nearest("a", []) is None


def test_a_hint_offers_the_nearest_name_else_all_of_them_sorted() -> None:
    assert did_you_mean("redings", ["readings", "b"], "streams") == 'Did you mean "readings"?'
    assert did_you_mean("zzz", ["b", "a", "b"], "streams") == "The streams here: a, b."
    assert did_you_mean("zzz", [], "streams") == "There are no streams."


def test_a_long_list_is_cut_and_says_so() -> None:
    names = [f"s{i:02}" for i in range(13)]
    hint = did_you_mean("qqqqqq", names, "streams")
    assert hint == f"The streams here: {', '.join(names[:12])}, ...."


def test_the_fingerprint_is_the_head_of_sha256() -> None:
    # Of the empty text, as printed in FIPS 180 test vectors.
    assert fingerprint("") == "e3b0c44298fc1c14"
    assert fingerprint("abc") == "ba7816bf8f01cfea"
