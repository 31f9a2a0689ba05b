"""/v1/libraries over a real socket, on both databases."""

import httpx

from tests.app.library.workshop import Workshop


def test_libraries_are_listed_with_what_they_hold(workshop: Workshop, operate: httpx.Client) -> None:
    assert operate.get("/v1/libraries").json() == {"libraries": []}
    workshop.load(workshop.write("a.csv", "text,label\n房间大,好评\n早餐凉,差评\n"), library="hotel")
    workshop.freeze("hotel")
    (listed,) = operate.get("/v1/libraries").json()["libraries"]
    assert (listed["library"], listed["samples"], listed["snapshots"]) == ("hotel", 2, 1)
