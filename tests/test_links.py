"""No link within the repository is broken, and the guide's table of contents is complete."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pytest
from pages import GUIDE, ROOT, Page, every_page, page

# The address that separately published pages use to link to the rest of the repository.
REPOSITORY = "https://github.com/polyflake/polyflake"


def target(on: Page, link: str) -> tuple[Path, str] | None:
    """The file and heading that a link leads to, or None for another site."""
    place, _, anchor = link.partition("#")
    if place == REPOSITORY:
        return ROOT / "README.md", "" if anchor == "readme" else anchor
    for prefix in (f"{REPOSITORY}/blob/main/", f"{REPOSITORY}/tree/main/"):
        if place.startswith(prefix):
            return ROOT / unquote(place.removeprefix(prefix)), anchor
    if "://" in link or link.startswith("mailto:"):
        return None
    return (on.path.parent / unquote(place) if place else on.path), anchor


def broken(on: Page, link: str) -> bool:
    found = target(on, link)
    if found is None:
        return False
    path, anchor = found
    if not path.exists():
        return True
    return bool(anchor) and (path.suffix != ".md" or anchor not in page(path).anchors)


@pytest.mark.parametrize("on", every_page(), ids=str)
def test_links(on: Page) -> None:
    assert [link for link in on.links if broken(on, link)] == []


def test_a_broken_link_is_noticed() -> None:
    readme = page("README.md")
    for link in (
        "docs",
        "docs/errors.md",
        "docs/errors.md#errors",
        "#install",
        "https://example.org/no",
        f"{REPOSITORY}#install",
        f"{REPOSITORY}/tree/main/docs",
    ):
        assert not broken(readme, link)
    for link in (
        "nowhere.md",
        "#nowhere",
        "docs/errors.md#nowhere",
        "docs/nowhere.md#errors",
        f"{REPOSITORY}#nowhere",
        f"{REPOSITORY}/blob/main/nowhere.md",
        "LICENSE#a",
    ):
        assert broken(readme, link)


def test_the_guides_contents() -> None:
    """mdBook omits pages missing from SUMMARY.md, and creates listed pages that do not exist."""
    summary = page("docs/SUMMARY.md")
    named = [(summary.path.parent / link).resolve() for link in summary.links]
    assert sorted(named) == sorted(on.path for on in GUIDE if on != summary)


def test_links_of_the_guide_stay_in_it() -> None:
    """The published book does not contain the rest of the repository."""
    docs = ROOT / "docs"
    for on in GUIDE:
        relative = [link for link in on.links if "://" not in link]
        paths = [(on.path.parent / link.partition("#")[0]).resolve() for link in relative]
        outside = [path for path in paths if not path.is_relative_to(docs)]
        assert outside == [], f"{on}: {outside}"
