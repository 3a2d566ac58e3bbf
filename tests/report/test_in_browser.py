"""The report in headless Chromium: figures are drawn, tables sort and filter, nothing is loaded, all can read it."""

from __future__ import annotations

import csv
import shutil
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

import gpupif
from gpupif.report.page import write_report
from gpupif.report.records import document_of
from gpupif.results.score_report import score_document
from gpupif.utils.display import as_json

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.subprocess,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="no Chromium here: apt-get install chromium chromium-driver"
    ),
    pytest.mark.skipif(find_spec("selenium") is None, reason="no Selenium here: pip install selenium"),
]
OPTIONS = (
    "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking disable-component-update "
    "disable-sync window-size=1200,900"
)
ROWS = 400
HOSTILE = '=1+1"</td><script>window.ran=1</script>'


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report on most kinds of results."""
    table = gpupif.datasets.census(ROWS, columns=6, seed=4).rename(columns={"education": HOSTILE})
    known = ["age", "sex", "region"]
    with gpupif.config(device="cpu"):
        pairs = gpupif.toxic_pairs(table)
        protection = gpupif.protect(table, require=["k>=3"], quasi_identifiers=known, suppress=0.1)
        documents = [
            score_document(gpupif.score(table)),
            document_of(gpupif.risk(table, known, HOSTILE)),
            document_of(pairs) | {"pairs": as_json(pairs.pairs)},
            document_of(gpupif.advise(table, columns=known)),
            document_of(protection),
        ]
    file = tmp_path_factory.mktemp("report") / "report.html"
    write_report(documents, file, "people.csv")
    return file


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in (*OPTIONS.split(), f"user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(f"--{option}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, report):
    """The report, opened anew, wide and light."""
    look(browser, "light", 1200)
    browser.get(report.as_uri())
    yield browser
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def look(browser, scheme, width):
    """Prefer a colour scheme, on a screen of a width."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def wait_for(browser, script, *arguments):
    """Return what a script returns, as soon as that is true."""
    for _ in range(200):
        found = browser.execute_script(f"return {script}", *arguments)
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"never true: {script}")


def table_box(page, caption):
    boxes = "[...document.querySelectorAll('.table')]"
    script = f"return {boxes}.find((box) => box.querySelector('caption').textContent === arguments[0])"
    return page.execute_script(script, caption)


def column(page, box, place):
    """The texts of a column of a table, of the rows that are seen."""
    rows = "[...arguments[0].querySelectorAll('tbody tr')].filter((row) => row.offsetParent)"
    script = f"return {rows}.map((row) => row.cells[arguments[1]].textContent)"
    return page.execute_script(script, box, place)


def test_all_figures_are_drawn(page):
    from selenium.webdriver.common.by import By

    charts = page.find_elements(By.CSS_SELECTOR, ".chart")
    assert len(charts) >= 9
    for chart in charts:
        page.execute_script("arguments[0].scrollIntoView()", chart)
        wait_for(page, "arguments[0].querySelector('.mlayer image, .mlayer path') !== null", chart)
        assert chart.get_attribute("aria-label")


def test_hovering_tells_band_column_median_and_highest(page):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    chart = page.find_element(By.ID, "figure-0")
    page.execute_script("arguments[0].scrollIntoView()", chart)
    wait_for(page, "arguments[0].querySelector('.mlayer image') !== null", chart)
    plot = chart.find_element(By.CSS_SELECTOR, ".nsewdrag")
    ActionChains(page).move_to_element_with_offset(plot, 0, -20).perform()
    told = wait_for(page, "arguments[0].querySelector('.hoverlayer').textContent", chart)
    assert "band " in told
    assert "median" in told
    assert "highest" in told
    before = page.execute_script("return document.querySelector('#figure-0 .mlayer image').getAttribute('href')")
    page.find_element(By.ID, "shown-0").send_keys("highest")
    script = "document.querySelector('#figure-0 .mlayer image').getAttribute('href') !== arguments[0]"
    wait_for(page, script, before)


def test_a_chosen_cell_is_shown_alone(page):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.select import Select

    select = Select(page.find_element(By.CSS_SELECTOR, "select[id^=cell-]"))
    number = select._el.get_attribute("id").removeprefix("cell-")
    chart = page.find_element(By.ID, f"figure-{number}")
    page.execute_script("arguments[0].scrollIntoView()", chart)
    wait_for(page, "arguments[0].querySelectorAll('.trace.bars').length === 2", chart)
    select.select_by_index(3)
    wait_for(page, "arguments[0].data[1].x[0] === figures[arguments[1]].choices[3].data[1].x[0]", chart, int(number))
    caption = chart.find_element(By.XPATH, "../figcaption")
    assert select.first_selected_option.text in caption.text == chart.get_attribute("aria-label")


def test_tables_sort_filter_and_export(page, tmp_path):
    from selenium.webdriver.common.by import By

    box = table_box(page, "Riskiest cells")
    headings = [head.text.split("\n")[0] for head in box.find_elements(By.CSS_SELECTOR, "th")]
    place = headings.index("CIG, bits")
    button = box.find_elements(By.CSS_SELECTOR, "th button")[place]
    for wanted, reverse in (("descending", True), ("ascending", False)):
        page.execute_script("arguments[0].click()", button)
        bits = [float(text) for text in column(page, box, place)]
        assert bits == sorted(bits, reverse=reverse)
        assert box.find_elements(By.CSS_SELECTOR, "th")[place].get_attribute("aria-sort") == wanted
    every = column(page, box, headings.index("column"))
    box.find_element(By.CSS_SELECTOR, "input").send_keys("AGE")
    left = column(page, box, headings.index("column"))
    assert 0 < len(left) < len(every)
    page.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    page.execute_script("arguments[0].click()", box.find_element(By.CSS_SELECTOR, ".bar button"))
    for _ in range(100):
        files = list(tmp_path.glob("*.csv"))
        if files:
            break
        time.sleep(0.1)
    with files[0].open(newline="") as file:
        names, *rows = list(csv.reader(file))
    assert names == headings
    assert [row[names.index("column")] for row in rows] == left


def test_what_a_spreadsheet_would_run_is_exported_as_text(page):
    assert page.execute_script("return quoted('=1+1')") == '"\'=1+1"'
    assert page.execute_script("return quoted('-1.5')") == '"-1.5"'
    assert page.execute_script("return quoted('a\"b')") == '"a""b"'


def test_the_page_runs_and_loads_nothing_else(browser, report):
    browser.get(report.as_uri())
    assert browser.execute_script("return window.ran") is None
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 2'; document.body.append(s)"
    )
    assert browser.execute_script("return window.ran") is None
    reached = browser.execute_async_script(
        "const done = arguments[0]; fetch('https://example.org/').then(() => done('reached'), () => done('refused'))"
    )
    assert reached == "refused"
    said = [entry["message"] for entry in browser.get_log("browser")]
    assert all("Content Security Policy" in message for message in said)
    assert len(said) >= 2


def test_it_is_dark_where_the_reader_wants_it_so(page):
    background = "return getComputedStyle(document.body).backgroundColor"
    text = "return [...document.querySelectorAll('#figure-0 text')].map((one) => one.style.fill)[0]"
    page.execute_script("document.getElementById('figure-0').scrollIntoView()")
    wait_for(page, "document.querySelector('#figure-0 text') !== null")
    light = page.execute_script(background), page.execute_script(text)
    look(page, "dark", 1200)
    wait_for(page, f"({background.removeprefix('return ')}) !== arguments[0]", light[0])
    wait_for(page, f"({text.removeprefix('return ')}) !== arguments[0]", light[1])


def test_it_fits_a_phone_and_paper(page, report):
    look(page, "light", 375)
    page.get(report.as_uri())
    assert page.execute_script("return document.documentElement.scrollWidth") <= 375
    pdf = page.execute_cdp_cmd("Page.printToPDF", {})["data"]
    assert len(pdf) > 50_000
    undrawn = "[...document.querySelectorAll('.chart')].every((chart) => chart.querySelector('.mlayer') !== null)"
    wait_for(page, undrawn)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 375)])
def test_axe_finds_nothing_serious(page, report, scheme, width):
    package = find_spec("axe_core_python")
    if package is None:
        pytest.skip("no axe-core here: pip install axe-core-python")
    look(page, scheme, width)
    page.get(report.as_uri())
    page.execute_script((Path(package.submodule_search_locations[0]) / "axe.min.js").read_text("utf-8"))
    found = page.execute_async_script(
        "const done = arguments[0]; axe.run().then(done, (error) => done({ error: `${error}` }))"
    )
    assert "error" not in found, found
    assert [(one["id"], one["impact"], one["nodes"][0]["html"][:200]) for one in found["violations"]] == []
    assert len(found["passes"]) > 20
