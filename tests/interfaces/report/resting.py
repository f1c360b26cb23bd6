"""When the map of a page is at rest: it has asked for no further frame, and waits for no time to draw all points."""

from typing import Any

LONGEST = 1000  # milliseconds until something of a map; what is tidied up later is no part of it
WATCHED = f"""(() => {{
  if (window.pending) return;
  const pending = window.pending = new Set(), frame = requestAnimationFrame, later = setTimeout, never = clearTimeout;
  window.requestAnimationFrame = (work) => {{
    const name = {{}};
    pending.add(name);
    return frame.call(window, (now) => {{ work(now); pending.delete(name); }});
  }};
  window.setTimeout = (work, milliseconds, ...others) => {{
    const number = later.call(window, () => {{ work(...others); pending.delete(number); }}, milliseconds);
    if (milliseconds < {LONGEST}) pending.add(number);
    return number;
  }};
  window.clearTimeout = (number) => {{ pending.delete(number); never.call(window, number); }};
}})()"""


def watch(page: Any) -> None:
    """Have a page that was just opened count what it waits for from now on."""
    page.value(WATCHED)


def wait_for_rest(page: Any) -> None:
    """Wait until a watched page waits for nothing, and has shown what it drew, however long its frames take."""
    page.wait("window.pending.size === 0")
    page.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
