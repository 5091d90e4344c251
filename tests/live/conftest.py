"""One browser for all tests of live pages; each page is opened from a file, and has to leave the console empty."""

from __future__ import annotations

import pytest
from pages import browser, errors, frame


@pytest.fixture(scope="session")
def driver():
    driver = browser()
    yield driver
    driver.quit()


@pytest.fixture
def opened(driver, cli, tmp_path):
    """Write a live page, and open it; in the end, the console has no error, and nothing was asked of the network."""

    def open_page(*arguments):
        file = tmp_path / "page.html"
        cli.done("graph", *arguments, "--output", str(file))
        driver.get("about:blank")
        driver.get(file.as_uri())
        frame(driver)
        return driver

    yield open_page
    assert errors(driver) == []
