"""Numbers of a live page that follow a drag, in the graph and over an image, and the ghost of the number before."""

from __future__ import annotations

import numpy as np
from conftest import long
from numpy.testing import assert_allclose
from pages import find, frame, numbers

pytestmark = long
PLACES = """
return [...document.querySelectorAll("[data-row], .gg-node, .card, button")].map((e) => e.getBoundingClientRect().top);
"""


def ghosts(driver):
    return [ghost.text for ghost in driver.find_elements("css selector", ".ghost")]


def drag(driver, element, right):
    from selenium.webdriver.common.action_chains import ActionChains

    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    ActionChains(driver).click_and_hold(element).move_by_offset(right, 0).release().perform()


def test_the_number_in_a_leaf_s_box_is_dragged_and_its_ghost_stays_a_second(opened):
    driver = opened("y=x**2+x", "--at", "x=3")
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    line = find(driver, '[data-box="x"] text')
    drag(driver, line, 0)
    before = driver.execute_script(PLACES)
    drag(driver, line, 31)
    assert ghosts(driver) == ["3", "3"]  # above the field, and above the box's number
    assert_allclose(driver.execute_script(PLACES), before, atol=0.5)
    assert find(driver, '[data-input="x"]').get_attribute("value") == "3.5"
    assert_allclose(numbers(driver)["grad-of x"], 2 * 3.5 + 1)
    driver.execute_async_script("setTimeout(arguments[0], 1300)")
    assert ghosts(driver) == []
    find(driver, '[data-action="undo"]').click()
    assert numbers(driver)["grad-of x"] == 7


def test_there_are_no_ghosts_for_those_who_want_little_motion(opened):
    driver = opened("y=x**2+x", "--at", "x=3")
    media = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    drag(driver, find(driver, '[data-box="x"] text'), 31)
    assert find(driver, '[data-input="x"]').get_attribute("value") == "3.5"
    assert ghosts(driver) == []
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_an_image_is_drawn_on_and_one_undo_takes_the_line_back(opened):
    image = np.arange(100).reshape(10, 10) / 100
    driver = opened("y=sum(w*x**2)", "--at", f"x={str(image.tolist()).replace(' ', '')},w=2")
    canvas = find(driver, "canvas")
    wide = driver.execute_script("return arguments[0].getBoundingClientRect().width", canvas)
    from selenium.webdriver.common.action_chains import ActionChains

    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    cell = round(wide / 10)
    chain = ActionChains(driver).move_to_element_with_offset(canvas, 4, 4).click_and_hold()
    for _ in range(3):
        chain = chain.move_by_offset(cell, 0)
    chain.release().perform()
    frame(driver)
    drawn = image.copy()
    drawn[5, 5:9] = 0  # from a bright entry: to the darkest
    assert_allclose(numbers(driver)["value-of y"], 2 * np.sum(drawn**2))
    find(driver, '[data-action="undo"]').click()
    assert_allclose(numbers(driver)["value-of y"], 2 * np.sum(image**2))
