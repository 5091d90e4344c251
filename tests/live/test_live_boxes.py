"""Boxes of a live page that open: what they show is what the system, opened, has."""

from __future__ import annotations

import numpy as np
from conftest import long
from pages import find, number

pytestmark = long
OPEN = """
const [name] = arguments;
document.querySelector(`[data-box="${CSS.escape(name)}"]`).dispatchEvent(new MouseEvent("click", { bubbles: true }));
"""
INSIDE = """
const texts = {};
for (const box of document.querySelectorAll(`[data-card="${arguments[0]}"] [data-box]`)) {
  texts[box.dataset.box] = [...box.querySelectorAll("[data-value], [data-adjoint]")].map((e) => e.textContent);
}
return texts;
"""


def test_a_call_opens_to_its_definition_with_numbers_that_follow(opened):
    driver = opened("y = mse_loss(x*w, t)", "--at", "x=3,w=2,t=1")
    box = find(driver, '[data-box="y"]')
    assert box.get_attribute("aria-expanded") == "false"
    driver.execute_script(OPEN, "y")
    assert box.get_attribute("aria-expanded") == "true"
    key = box.get_attribute("data-inside")
    for x in (3, 5):
        field = find(driver, '[data-input="x"]')
        field.clear()
        field.send_keys(str(x))
        found = driver.execute_script(INSIDE, key)
        difference = 2 * x - 1
        (root,) = [name for name, texts in found.items() if texts[:1] == [str(difference)]]
        assert float(found[root][1]) == 2 * difference  # ∂(d²)/∂d
        assert [float(t) for t in found["y"]] == [difference**2, 1]
    driver.execute_script(OPEN, "y")
    assert box.get_attribute("aria-expanded") == "false"
    assert not driver.execute_script(INSIDE, key)


def test_a_loop_opens_to_its_rounds_and_shows_their_sizes(opened):
    driver = opened("h[0] = x; h[t] = tanh(w*h[t-1]) for t in 1..30; L = h[30]**2", "--at", "x=0.5,w=1.25")
    h = [0.5]
    for _ in range(30):
        h.append(float(np.tanh(1.25 * h[-1])))
    texts = [e.text for e in driver.find_elements("css selector", "[data-rounds]")]
    last = 2 * h[30]
    first = last * np.prod([(1 - v**2) * 1.25 for v in h[2:31]])
    ends = [float(texts[1].split()[k]) for k in (0, -1)]
    np.testing.assert_allclose(ends, [first, last], rtol=5e-3)
    driver.execute_script(OPEN, "h[30]")
    found = driver.execute_script(INSIDE, find(driver, "[data-card]").get_attribute("data-card"))
    shown = {name: number(texts[0]) for name, texts in found.items() if name.startswith("h[")}
    np.testing.assert_allclose([shown[f"h[{k}]"] for k in range(1, 31)], h[1:], rtol=1e-5)


def test_a_sum_of_many_terms_has_a_step_for_each_term(opened):
    driver = opened("y = a + b*b - c + d + a", "--at", "a=2,b=3,c=4,d=5")
    said = []
    find(driver, '[data-action="backward"]').click()
    while find(driver, '[data-action="next"]').is_enabled():
        find(driver, '[data-action="next"]').click()
        said.append(find(driver, "[data-step]").text)
    assert sum("∂y/∂" in text for text in said) == 5
    assert find(driver, '[data-grad-of="a"]').text == "2"
    assert find(driver, '[data-grad-of="c"]').text == "-1"


def test_an_array_of_more_than_sixteen_entries_is_cells_in_colours(opened):
    driver = opened("Y = outer(x, x)", "--at", "x=[1,-2,0,3,-4]", "--v", "ones")
    cells = """
    const canvas = document.querySelector('[data-heat^="value"]');
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return [canvas.width, canvas.height, [...data]];
    """
    width, height, data = driver.execute_script(cells)
    assert (width, height) == (5, 5)
    red, green, blue = np.array(data).reshape(25, 4)[:, :3].T.astype(int)
    values = np.outer([1, -2, 0, 3, -4], [1, -2, 0, 3, -4]).reshape(-1)
    assert np.array_equal(green > red, values > 0)
    assert np.array_equal(blue > green, values < 0)
    assert np.array_equal((red == 255) & (green == 255) & (blue == 255), values == 0)
    order = np.argsort(values[values > 0])  # the larger, the darker
    assert (np.diff(red[values > 0][order]) <= 0).all()
