"""Values of a table: no text of a run shows them, whatever they are, unless the configuration allows that."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pandas as pd
import pytest

from gpupif.errors import InputError, marked, reason_of
from gpupif.nightly.configuration.secrets import Redaction
from gpupif.nightly.exit_codes import Status
from tests.helpers.nights import FIRST, SECOND, Nights

# Part of all values that must not be shown.
CANARY = "canaryqz"
HOSTILE = [
    f"O'Hara {CANARY} \"{CANARY}\" said ]b[ (c) {{{CANARY}}} $x *** \\ it's {CANARY}",
    f"first\n{CANARY}\r\n\tlast",
    f"\ufdd1{CANARY}\ufdd0 {CANARY}\ufdd1\ufdd1 {CANARY} ÅÄÖ \u202e \u200b 漢字 \U0001f9ec",
    f"row 3, column 'age': {CANARY} rows, got 2 columns, got 3: {CANARY}, after row 7). {CANARY}" * 2,
]


def weight(nights, value):
    nights.write("b", {**SECOND, "person": ["5", "6", value, "8"]})
    nights.write("a", {**FIRST, "person": ["1", "2", "3", "4"]})
    return ["score.weights=person"]


def alone(nights, value):
    for name, columns in (("a", FIRST), ("b", SECOND)):
        nights.write(name, {**columns, "illness": [value] * 4})
    return []


def order(nights, value):
    nights.write("b", {**SECOND, "illness": ["flu", "cold", value, value]})
    return ['score.distances={illness=["flu", "cold"]}', 'score.measures=["emd"]']


def hierarchy(nights, value):
    nights.write("b", {**SECOND, "illness": ["flu", "cold", value, value]})
    (nights.folder / "illness.csv").write_text("flu;lungs;*\ncold;nose;*\n")
    return ["score.distances={illness='illness.csv'}", 'score.measures=["emd"]']


def bad_hierarchy(nights, value):
    text = value.replace("\n", " ").replace("\r", " ").replace('"', '""')
    (nights.folder / "illness.csv").write_text(f'flu;"{text}";*\ncold;nose;"{text}"\n', newline="")
    return ["score.distances={illness='illness.csv'}", 'score.measures=["emd"]']


def priors(nights, value):
    nights.write("b", {**SECOND, "illness": ["flu", "cold", value, value]})
    (nights.folder / "priors.json").write_text(json.dumps({"illness": {"flu": 0.5, f"{CANARY} x": 0.5}}))
    return ["score.priors=priors.json"]


def bad_priors(nights, value):
    (nights.folder / "priors.json").write_text(json.dumps({"illness": [value]}))
    return ["score.priors=priors.json"]


def population(nights, value):
    nights.write("b", {**SECOND, "illness": ["flu", "cold", value, value]})
    pd.concat([pd.DataFrame(FIRST), pd.DataFrame(SECOND)]).to_parquet(nights.folder / "population.parquet")
    return ["score.population=population.parquet"]


def long_row(nights, value):
    (nights.table / "a.parquet").unlink()
    (nights.table / "b.parquet").unlink()
    text = value.replace('"', '""')
    (nights.table / "a.csv").write_text(f'age,illness\n30,flu\n40,"{text}",{CANARY}\n', newline="")
    return ["input.path=table/*.csv"]


def open_quote(nights, value):
    (nights.table / "a.parquet").unlink()
    (nights.table / "b.parquet").unlink()
    (nights.table / "a.csv").write_text(f'age,illness\n30,flu\n40,"{value.replace(chr(34), "")}', newline="")
    return ["input.path=table/*.csv"]


FAULTS = (weight, alone, order, hierarchy, bad_hierarchy, priors, bad_priors, population, long_row, open_quote)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("fault", "value"),
    [
        pytest.param(fault, HOSTILE[(number + more) % 4], id=f"{fault.__name__}-{(number + more) % 4}")
        for number, fault in enumerate(FAULTS)
        for more in (0, 2)
    ],
)
def test_no_text_of_a_run_shows_a_value(tmp_path, caplog, fault, value):
    reports = ("json_file = 'r.json'", "markdown = 'r.md'", "junit = 'r.xml'", "prometheus = 'r.prom'")
    nights = Nights(tmp_path, "\n".join(["\n[tell]", *reports]))
    overrides = fault(nights, value)
    posted = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        outcome = nights.run(*overrides, f'tell.webhooks=[{{url="{url}"}}, {{url="{url}", format="openlineage"}}]')
        server.shutdown()
    assert outcome.status is Status.REFUSED, outcome.error
    assert len(posted) == 2
    shown = [outcome.to_json(), *caplog.messages, *(post.decode() for post in posted)]
    shown += [(tmp_path / f"r.{kind}").read_text() for kind in ("json", "md", "xml", "prom")]
    for text in [*shown, (nights.state / "record.sqlite").read_bytes().decode("latin-1")]:
        assert CANARY not in text
    assert CANARY in nights.run(*overrides, "run.show_values=true").error or fault is open_quote


def test_a_message_hides_values_and_shows_names_and_numbers():
    error = InputError(f"column 'age': expected 2 or more, got {marked('17')} in row 3.")
    assert str(error) == "column 'age': expected 2 or more, got 17 in row 3."
    assert Redaction([], False).error(error) == "column 'age': expected 2 or more, got *** in row 3."
    assert Redaction([], True).error(error) == str(error)


def test_a_value_stays_hidden_in_the_error_of_an_error():
    inner = InputError(f"table: got {marked(CANARY)} there.")
    for outer in (inner.about("population"), InputError(f"file.csv: {reason_of(inner)}.")):
        assert CANARY in str(outer)
        assert CANARY not in Redaction([], False).error(outer)
        assert Redaction([], False).error(outer).endswith(": got *** there.")


@pytest.mark.parametrize("text", ["Could not convert string 'Sm\nith'", "missing ): (Alice", "it's truncated"])
def test_words_of_other_libraries_are_hidden_as_a_whole(text):
    error = InputError(f"t.parquet: could not be read: {reason_of(ValueError(text))}.")
    assert Redaction([], False).error(error) == "t.parquet: could not be read: ***."
    assert str(error) == f"t.parquet: could not be read: {' '.join(text.split())}."


def test_words_of_the_system_and_of_documents_are_shown():
    with pytest.raises(ValueError, match="Expecting") as error:
        json.loads("[1,")
    gone = FileNotFoundError(2, "No such file or directory")
    for reason in (reason_of(error.value, has_values=False), reason_of(gone)):
        assert Redaction([], False).error(InputError(reason)) == reason
        assert reason in (str(error.value), str(gone))
