"""How many points are drawn while the map moves follows what frames take, on machines of known speed."""

import numpy as np
import pytest

from scalemani.interfaces.report.page import text_of

TOTAL = 1_000_000
SHOWN = 50.0 / 3  # milliseconds: a screen shows 60 pictures a second
LONGEST = 40.0  # milliseconds: 25 frames a second, where 20 are promised
FEWEST = 5000


@pytest.fixture(scope="module")
def browser(open_browser):
    return open_browser()


def frames(browser, milliseconds: str, total: int = TOTAL, count: int = 80) -> np.ndarray:
    """Return the points and milliseconds (n, 2) of frames of a machine that takes so many for `points` and `frame`."""
    seen = browser.value(
        f"""(() => {{ {text_of("pace.js")}
        const pace = new Pace({total}), seen = [];
        for (let frame = 0; frame < {count}; frame++) {{
          const points = pace.points, took = {milliseconds};
          seen.push([points, took]);
          pace.learn(points, took);
        }}
        return seen;
        }})()"""
    )
    return np.array(seen)


@pytest.mark.parametrize(
    ("fixed", "a_point"), [(3.0, 1e-4), (5.0, 2e-4), (20.0, 5e-4), (25.0, 2e-5), (2.0, 2e-3), (30.0, 3e-4)]
)
def test_frames_keep_to_25_a_second_and_points_are_no_fewer_than_that_takes(browser, fixed, a_point):
    shown = f"{SHOWN} * Math.ceil(({fixed} + {a_point} * points) / {SHOWN})"
    points, took = frames(browser, shown)[15:].T
    assert took.mean() <= LONGEST
    fitting = min(TOTAL, max(FEWEST, (2 * SHOWN - fixed) / a_point))
    assert 0.5 * fitting <= points.mean() <= 1.5 * fitting


def test_the_first_frame_has_few_points_and_the_next_never_many_more(browser):
    points = frames(browser, "5")[:, 0]
    assert points[0] <= 20_000
    assert (points[1:] <= 1.25 * points[:-1] + 1).all()
    assert points[-1] == TOTAL


def test_maps_of_few_points_are_drawn_whole_where_there_is_time(browser):
    assert (frames(browser, "10", total=3000)[:, 0] == 3000).all()


def test_a_machine_that_is_too_slow_for_any_is_soon_given_the_fewest(browser):
    points = frames(browser, "80 + 1e-3 * points")[:, 0]
    assert (points[4:] == FEWEST).all()


def test_after_one_slow_frame_points_are_few_for_a_few_frames_and_then_as_many_as_before(browser):
    quick = "5 + 2e-4 * points"
    points = frames(browser, f"{quick} + (frame === 40 ? 400 : 0)")[:, 0]
    assert (points[41:49] < 0.15 * points[40]).all()
    assert points[65] > 0.7 * points[40]
