"""Live pages in a browser that no window shows: what is typed into them, and the numbers that they then have."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

from gradcli.cli.inputs.system import read_situation, read_system_of
from gradcli.cli.options import SystemOptions
from gradcli.errors import InputError, Notes
from gradcli.graph.names import element_names

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.grad"))
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1280,800")

# Types numbers into fields, and returns all numbers that the page then shows, by what they are of.
TYPE = """
const [inputs, points] = arguments;
return points.map((point) => {
  point.forEach((text, k) => {
    const field = document.querySelector(`[${inputs[k][0]}="${CSS.escape(inputs[k][1])}"]`);
    field.value = text;
    field.dispatchEvent(new Event("input"));
    field.dispatchEvent(new Event("change"));
  });
  return NUMBERS();
});
"""
NUMBERS = """
const NUMBERS = () => {
  const result = {};
  for (const kind of ["value-of", "grad-of", "adjoint-of"]) {
    for (const e of document.querySelectorAll(`[data-${kind}]`)) {
      if (e.dataset.number === undefined) continue;
      const key = `${kind} ${e.getAttribute(`data-${kind}`)}`;
      if (key in result && result[key] !== e.dataset.number) throw new Error(`${key} is shown twice, differently`);
      result[key] = e.dataset.number;
    }
  }
  return result;
};
"""


def browser():
    """Return a browser; skip where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver")
    binary = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("needs chromium and chromedriver (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for option in OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


def until(driver, condition):
    """Wait until a condition of the page holds, however long that takes, and return what it gave."""
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(driver, 20, poll_frequency=0.05).until(condition)


def frame(driver):
    """Wait until what waits for the next frame is shown."""
    driver.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 20))")


def find(driver, selector):
    return driver.find_element("css selector", selector)


def click(driver, action, times=1):
    for _ in range(times):
        find(driver, f'[data-action="{action}"]').click()


def check_axe(driver):
    """Check that everybody can use what the page shows; skip where axe-core is missing."""
    axe = os.environ.get("GRADCLI_AXE")
    if not axe:
        pytest.skip("needs axe-core: GRADCLI_AXE names axe.min.js, which npm installs")
    driver.execute_script(Path(axe).read_text("utf-8"))
    found = driver.execute_async_script("axe.run(document).then(arguments[0])")["violations"]
    assert [(v["id"], v["impact"], [n["html"][:200] for n in v["nodes"]]) for v in found] == []


def numbers(driver):
    """Return all numbers that the page shows, by what they are of: `value-of y`."""
    return {key: number(text) for key, text in driver.execute_script(f"{NUMBERS} return NUMBERS();").items()}


def number(text):
    return float(text.replace("Infinity", "inf"))


def type_points(driver, fields, points):
    """Type points into fields, which are given by attribute and name; return the numbers after each."""
    result = driver.execute_script(NUMBERS + TYPE, fields, [[repr(float(x)) for x in point] for point in points])
    return [{key: number(text) for key, text in one.items()} for one in result]


def errors(driver):
    """Return what the browser's console has of errors, and the addresses that were options for beside the page's."""
    told = [e["message"] for e in driver.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            if not url.startswith(("file:", "data:", "about:", "chrome:")):
                told.append(url)
    return told


def system_of(path):
    """Return the graph of a sample with the leaves' names; None for claims and for what needs shapes."""
    options = SystemOptions((), (str(path),), (), (), None, None, None)
    try:
        situation = read_situation(read_system_of(options), options, Notes())
    except InputError:
        return None
    return situation.graph


def scalars(nodes):
    """Return the names of the elements of inputs or outputs, in one list."""
    return [name for n, x in nodes.items() for name in element_names(n, x.shape)]


def flattened(values):
    """Return what JSON has of a gradient or a value, by the names of elements."""
    result = {}
    for name, value in values.items():
        array = np.array(value, dtype=object)
        for element, x in zip(element_names(name, array.shape), array.reshape(-1), strict=True):
            result[element] = number(x) if isinstance(x, str) else float(x)
    return result
