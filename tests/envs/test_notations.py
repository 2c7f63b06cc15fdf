"""What the bytes of a text file become: encodings, separators, comments, notations of numbers, numbers that stay text."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from banditlab.envs._columns import column_of
from banditlab.envs._lines import records, refuse_odd_lines, sniff_separator, without_comments
from banditlab.envs._reading import PLAIN, Reading, exact, is_one_of, with_numbers
from banditlab.envs._text import as_utf8, from_ascii, in_ascii
from banditlab.errors import FaultError


@pytest.mark.parametrize(("data", "name"), [(b"a\0b\0", "utf-16-le"), (b"\xe9", "cp1252"), (b"\x81", "latin-1")])
def test_an_encoding_is_proposed(data: bytes, name: str) -> None:
    with pytest.raises(FaultError) as error:
        as_utf8("t", data)
    assert error.value.options == ("--encoding", name)
    for few in (b"a\0b\0c\0d\0ee", b"a\0"):  # too few zeros for UTF-16
        assert as_utf8("t", few) == few


@pytest.mark.parametrize("text", ["plain", "é", "\2e9\3", "\0\1\2\3é"])
def test_a_text_comes_back_from_ascii(text: str) -> None:
    assert in_ascii(text).isascii()
    assert from_ascii(in_ascii(text)) == text


@pytest.mark.parametrize(
    ("data", "separator"),
    [
        (b"a;b,c\n" * 20 + b"a,b\n", ";"),  # a tie goes to the semicolon
        (b"a;b,c\n" * 19 + b"a,b\n", ","),
        (b'a,b\n1,"p;q\nr;s"\n2,"p;q\nr;s"\n', ","),
        (b'a;"p,q\nr,s"\n', ";"),
        ((b"," + b";" * 29_998 + b"\n") * 3, ";"),  # the third line is cut off
    ],
    ids=range(5),
)
def test_the_separator_splits_most_of_the_first_20_lines(data: bytes, separator: str) -> None:
    assert sniff_separator("t", data) == separator


def test_lines_that_are_blank_or_comments_are_no_rows() -> None:
    assert [*records("t", b"a,b\n\n  \n,\nc\n", ",")] == [(["a", "b"], 1), (["", ""], 4), (["c"], 5)]
    assert without_comments(b'#1\na,b\n"q",1\n#2\n"x\n#3",2\n', ["#"]) == b'a,b\n"q",1\n"x\n#3",2\n'
    refuse_odd_lines("t", b"#a,b\n1,2\n", ",")
    with pytest.raises(FaultError, match="a line begins with '##'") as error:
        refuse_odd_lines("t", b"a,b\n1,2\n## note\n3,4\n", ",")
    assert error.value.options == ("--comment", "##")


@pytest.mark.parametrize(
    ("texts", "reading", "found"),
    [
        (["1.234,5", "12"], Reading(",", "."), [1234.5, 12.0]),
        (["1,5", "2,5"], PLAIN, [1.5, 2.5]),
        (["1,234.5", "2"], Reading(","), ["1,234.5", "2"]),
        (["1,5"] * 9 + ["oops"], Reading(","), ["1.5"] * 9 + ["oops"]),
        (["1,5"] * 8 + ["oops"] * 2, Reading(","), ["1,5"] * 8 + ["oops"] * 2),
    ],
)
def test_a_column_is_read_in_its_notation(texts: list[str], reading: Reading, found: list[Any]) -> None:
    frame, faults = with_numbers(pd.DataFrame({"x": texts, "y": "a"}), "y", reading, "t")
    assert frame["x"].tolist() == found
    assert len(faults) == (reading == PLAIN)


def test_a_code_for_a_gap_is_a_text_or_its_number() -> None:
    assert [is_one_of(value, ("9999", "-")) for value in ("9999", 9999.0, 9998, "x")] == [True, True, False, False]


@pytest.mark.parametrize(
    ("column", "is_exact"),
    [
        (["1", "2.5", "-3e4"], True),
        (["01", "2"], False),  # codes
        (["01", "2.5"], True),  # not whole numbers
        (["9007199254740992", "9007199254740994"], True),
        (["9007199254740992", "9007199254740993"], False),  # equal as floats
        (["01", "9007199254740994"], False),
    ],
)
def test_numbers_replace_their_strings_only_without_loss(column: list[str], is_exact: bool) -> None:
    text = pd.Series(column)
    assert exact(text, text.astype(float)) == is_exact


def test_whole_numbers_that_may_equal_others_as_floats_are_categories() -> None:
    numbers = (2**53 - 1, 2**53, 1 - 2**53, -(2**53))
    assert [column_of(pd.Series([n, 1, 1]), 9, "t").n_categories for n in numbers] == [0, 2, 0, 2]
