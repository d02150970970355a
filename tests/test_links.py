"""No link within the repository is broken, and the guide's table of contents is whole."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from pages import GUIDE, ROOT, Page, every_page, page

# Where a published page links to what it does not bring along.
REPOSITORY = (
    "https://github.com/polyflake/polyflake/blob/main/",
    "https://github.com/polyflake/polyflake/tree/main/",
)


def broken(on: Page, link: str) -> bool:
    place, _, anchor = link.partition("#")
    for prefix in REPOSITORY:
        if link.startswith(prefix):
            path = ROOT / unquote(place.removeprefix(prefix))
            break
    else:
        if "://" in link or link.startswith("mailto:"):
            return False
        path = (on.path.parent / unquote(place)).resolve() if place else on.path
    if not path.exists():
        return True
    return bool(anchor) and (path.suffix != ".md" or anchor not in Page(path).anchors)


@pytest.mark.parametrize("on", every_page(), ids=str)
def test_links(on: Page) -> None:
    assert [link for link in on.links if broken(on, link)] == []


def test_a_broken_link_is_noticed() -> None:
    readme = page("README.md")
    for link in (
        "nowhere.md",
        "docs",
        "docs/errors.md",
        "docs/errors.md#errors",
        "#install",
        "https://example.org/no",
    ):
        assert broken(readme, link) is (link == "nowhere.md")
    for link in (
        "#nowhere",
        "docs/errors.md#nowhere",
        "docs/nowhere.md#errors",
        f"{REPOSITORY[0]}nowhere.md",
        "LICENSE#a",
    ):
        assert broken(readme, link)


def test_the_guides_contents() -> None:
    """mdBook leaves out what SUMMARY.md does not name, and makes what is not there."""
    summary = page("docs/SUMMARY.md")
    named = [(summary.path.parent / link).resolve() for link in summary.links]
    assert sorted(named) == sorted(on.path for on in GUIDE if on != summary)


def test_links_of_the_guide_stay_in_it() -> None:
    """A book does not have the rest of the repository. The benchmarks' page is generated."""
    docs = ROOT / "docs"
    for on in GUIDE:
        outside = [
            link
            for link in on.links
            if "://" not in link
            and not (on.path.parent / link.partition("#")[0]).resolve().is_relative_to(docs)
        ]
        assert outside == [] or str(on) == "docs/benchmarks/README.md", f"{on}: {outside}"
