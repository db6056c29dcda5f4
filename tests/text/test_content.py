from hypothesis import given
from hypothesis import strategies as st

from stream.text import content_key, raw_key

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@given(ANY_TEXT, ANY_TEXT)
def test_keys_are_16_bytes_and_equal_only_for_equal_texts(a, b):
    for key in (content_key, raw_key):
        assert len(key(a)) == 16
        assert (key(a) == key(b)) == (a == b)


@given(ANY_TEXT)
def test_a_raw_key_never_meets_a_content_key(text):
    assert raw_key(text) != content_key(text)


def test_lone_surrogates_have_keys_of_their_own():
    assert len({content_key(text) for text in ("\ud800", "\ud801", "\udc00", "?", "")}) == 5


def test_keys_are_the_same_on_every_machine():
    assert content_key("").hex() == "99aa06d3014798d86001c324468d497f"  # XXH3 128 of nothing, as published.
