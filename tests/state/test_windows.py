"""How originals are divided over windows."""

from state_model import original

from state.windows import MAX_LOCAL_IDS, Extent, divide


def ranges(divided):
    return [(extent.first, extent.last, extent.size) for extent, _ in divided]


def test_originals_of_one_span_go_to_one_window():
    divided = divide(
        None, [original(3, 10), original(5, 50), original(9, 109)], span=100, floor=1, changelog=0
    )
    assert divided[0][0] == Extent(first=3, first_time=10, last=9, last_time=109, size=3, merged=0)
    assert len(divided) == 1


def test_a_window_ends_a_span_after_its_first_original():
    divided = divide(
        None,
        [original(3, 10), original(5, 109), original(6, 110), original(7, 300)],
        span=100,
        floor=1,
        changelog=0,
    )
    assert ranges(divided) == [(3, 5, 2), (6, 6, 1), (7, 7, 1)]
    assert [[item.offset for item in added] for _, added in divided] == [[3, 5], [6], [7]]


def test_a_window_of_few_originals_goes_on_past_its_span():
    originals = [original(3, 10), original(5, 500), original(6, 900), original(7, 901), original(8, 1001)]
    assert ranges(divide(None, originals, span=100, floor=3, changelog=0)) == [(3, 6, 3), (7, 8, 2)]


def test_the_newest_window_goes_on_and_keeps_what_is_merged():
    newest = Extent(first=0, first_time=0, last=4, last_time=40, size=5, merged=3)
    divided = divide(newest, [original(5, 99), original(6, 100)], span=100, floor=1, changelog=0)
    assert divided[0][0] == Extent(first=0, first_time=0, last=5, last_time=99, size=6, merged=3)
    assert ranges(divided) == [(0, 5, 6), (6, 6, 1)]


def test_the_newest_window_is_left_alone_where_nothing_goes_into_it():
    newest = Extent(first=0, first_time=0, last=4, last_time=40, size=5, merged=3)
    assert ranges(divide(newest, [original(9, 100)], span=100, floor=1, changelog=0)) == [(9, 9, 1)]
    assert divide(newest, [], span=100, floor=1, changelog=0) == []


def test_a_window_ends_where_local_ids_do():
    divided = divide(
        None, [original(7, 0), original(6 + MAX_LOCAL_IDS, 1), original(7 + MAX_LOCAL_IDS, 2)], 100, 1, 0
    )
    assert ranges(divided) == [(7, 6 + MAX_LOCAL_IDS, 2), (7 + MAX_LOCAL_IDS, 7 + MAX_LOCAL_IDS, 1)]


def test_an_extent_is_read_back_as_it_was():
    extent = Extent(first=3, first_time=-1, last=9, last_time=109, size=3, merged=2, changelog=5)
    assert Extent.decode(extent.encode()) == extent


def test_an_extent_of_a_version_that_did_not_know_the_changelog_needs_all_of_it():
    extent = Extent.decode(
        b'{"first": 3, "first_time": 0, "last": 9, "last_time": 9, "size": 3, "merged": 2}'
    )
    assert extent.changelog == 0
