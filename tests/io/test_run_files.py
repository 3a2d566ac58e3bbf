"""Which outputs are inputs: by links, by folders, by what documents name, and from Python."""

import json
import os
from pathlib import Path

import pytest

import gpupif
from gpupif.errors import InputError, OutputError, ReplacedInputError
from gpupif.io.run_files import check_apart

TABLE = "age,sex\n39,f\n39,m\n40,f\n41,m\n"
HIERARCHY = '{"39": ["old", "*"], "40": ["old", "*"], "41": ["old", "*"]}'


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def apart(output, *inputs):
    """Return whether an output may be written."""
    try:
        check_apart({"": output}, {"": list(inputs)})
    except ReplacedInputError:
        return False
    return True


def test_files_are_told_apart_whatever_leads_to_them(here):
    Path("folder").mkdir()
    Path("folder/a.csv").write_text(TABLE)
    Path("link").symlink_to("folder")
    Path("far.csv").symlink_to("link/a.csv")
    os.link("folder/a.csv", "hard.csv")
    Path("dangling.csv").symlink_to("folder/new.csv")
    for one in ("folder/a.csv", "link/a.csv", "far.csv", "hard.csv", here / "folder/../folder/a.csv"):
        for other in ("folder/a.csv", "link/a.csv", "far.csv", "hard.csv", "folder/*.csv", Path("link/a.csv")):
            assert not apart(one, other), (one, other)
    assert apart("folder/b.csv", "folder/a.csv", "far.csv")
    assert not apart("dangling.csv", "link/new.csv")
    # A file that does not exist is not asked of the disk, which may ignore the case of letters.
    assert not apart("folder/NEW.csv", "link/new.csv")
    # A file that exists is.
    assert apart("folder/A.csv", "folder/a.csv") or os.path.exists("folder/A.csv")


@pytest.mark.parametrize(
    ("output", "said"),
    [("a/b", "is"), ("a/b/c.csv", "is inside"), ("a/b/c/d", "is inside"), ("a", "holds"), (".", "holds")],
)
def test_the_error_says_whether_an_output_is_inside_or_around(here, output, said):
    Path("a/b").mkdir(parents=True)
    with pytest.raises(ReplacedInputError) as refused:
        check_apart({"--output": output}, {"table": "a/b"})
    expected = f"--output: {Path(output)}: the output {said} the input a/b (table). Choose another place for it."
    assert str(refused.value) == expected
    with pytest.raises(ReplacedInputError) as refused:
        check_apart({"--output": "a/b", "--report": output}, {})
    said = {"is": "names the same file as"}.get(said, said)
    assert str(refused.value) == f"--report: {said} --output, a/b. Give each a place of its own."


def test_texts_of_documents_and_pipes_do_no_harm(here):
    Path("a.csv").write_text(TABLE)
    texts = ["~nobody at all/a.csv", "a.csv\0.csv", "[", "**/*.csv", "x" * 5_000 + ".csv", "plan.json"]
    Path("plan.json").write_text(json.dumps({"hierarchies": texts, "deep": {"er": [texts]}}))
    Path("wrong.json").write_text("{")
    os.mkfifo("pipe.toml")
    assert apart("a.csv", "plan.json", "wrong.json", "pipe.toml", "none.toml", {"a": "ordered", "b": 3}, None, 4)
    assert not apart("a.csv", {"age": "a.csv"})


def test_the_error_is_of_an_input_and_of_an_output():
    assert issubclass(ReplacedInputError, InputError)
    assert issubclass(ReplacedInputError, OutputError)


def test_an_output_is_not_inside_or_around_an_input(here):
    gpupif.datasets.census(10).to_parquet("one.parquet")
    Path("parts/2024").mkdir(parents=True)
    Path("away").mkdir()
    os.link("one.parquet", "parts/2024/a.parquet")
    Path("parts/b.parquet").symlink_to(here / "one.parquet")
    Path("out").symlink_to("parts")
    for output in ("parts", "parts/2024", "parts/2024/new.parquet", "out/new", ".", "one.parquet"):
        assert not apart(output, "parts"), output
    assert not apart("parts", "parts/2024/a.parquet")
    assert apart("away", "parts", "one.parquet")
    assert apart("away/parts", "parts")


def test_no_function_replaces_its_inputs(here):
    Path("people.csv").write_text(TABLE)
    Path("all.csv").write_text(TABLE)
    Path("priors.csv").write_text("column,value,probability\n")
    Path("age.json").write_text(HIERARCHY)
    Path("roles.toml").write_text("[roles]\n")
    Path("treat.key").write_bytes(bytes(32))
    Path("plan.json").write_text('{"hierarchies": {"age": "age.json"}, "treatment": []}')
    plan = gpupif.Plan.load("plan.json")
    found = gpupif.suda("people.csv")
    with gpupif.config(memory_limit="4GiB"):
        streamed = gpupif.suda("people.csv")
    scores = gpupif.score_files("people.csv", "scores.parquet", ["cig"])
    parts = gpupif.score_files("people.csv", "parts", ["cig"])
    for write in (parts.write, gpupif.open_scores("parts").cells().write):
        with pytest.raises(ReplacedInputError, match=r"parts/new\.csv: the output is inside the input"):
            write("parts/new.csv")
    before = {file: file.read_bytes() for file in here.iterdir() if file.is_file()}
    for number, file in enumerate(before):
        os.symlink(file, f"link-{number}.csv")
        os.symlink(file, f"link-{number}.json")
        os.symlink(file, f"link-{number}.html")
    link = {file.name: f"link-{number}" for number, file in enumerate(before)}
    kept = {"overwrite": True}
    refused = {
        "people.csv": [
            lambda to: gpupif.score_files("people.csv", f"{to}.csv", **kept),
            lambda to: gpupif.treat_files("people.csv", f"{to}.csv", plan, **kept),
            lambda to: found.write(f"{to}.csv"),
            lambda to: streamed.write(f"{to}.csv"),
            lambda to: scores.write(f"{to}.csv"),
            lambda to: scores.cells(top=1).write(f"{to}.csv"),
            lambda to: scores.report(f"{to}.html"),
        ],
        "scores.parquet": [
            lambda to: scores.report(f"{to}.html"),
            lambda to: gpupif.open_scores("scores.parquet").report(f"{to}.html"),
        ],
        "all.csv": [lambda to: gpupif.score_files("people.csv", f"{to}.csv", population="all.csv", **kept)],
        "priors.csv": [lambda to: gpupif.score_files("people.csv", f"{to}.csv", priors="priors.csv", **kept)],
        "age.json": [
            lambda to: gpupif.score_files("people.csv", f"{to}.csv", "emd", distances={"age": "age.json"}, **kept),
            lambda to: gpupif.treat_files("people.csv", f"{to}.csv", "plan.json", **kept),
            lambda to: gpupif.treat_files("people.csv", f"{to}.csv", plan, **kept),
            lambda to: plan.save(f"{to}.json", **kept),
        ],
        "plan.json": [lambda to: gpupif.treat_files("people.csv", f"{to}.csv", "plan.json", **kept)],
        "treat.key": [lambda to: gpupif.treat_files("people.csv", f"{to}.csv", plan, key="treat.key", **kept)],
        "roles.toml": [lambda to: gpupif.score_files("people.csv", f"{to}.csv", roles="roles.toml", **kept)],
    }
    for name, calls in refused.items():
        for call in calls:
            with pytest.raises(ReplacedInputError, match=f"{link[name]}.*: the output is the input"):
                call(link[name])
    assert {file: file.read_bytes() for file in before} == before
