"""The release of a night: a treated table, tables of counts, and answers charged to a ledger, if no gate fails.

The ledger is charged for an input and its queries once. Its charge names them by a digest, and the answers are kept in
the state folder under that digest: a run on the same input publishes them again. If a crash came between the charge and
the answers, the ledger has the digest and the state has none: the release fails, and says so.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import GpupifError, InputError, OutputError
from ..io.documents import parse_json
from ..io.formats import WRITTEN_ENDINGS
from ..io.write import check_output, replacing, write_text
from ..out_of_core.output_options import OutputOptions
from ..treatment.plan import Plan
from ..treatment.plan_run import find_key
from ..treatment.treat_files import treat_source
from ..utils.display import json_text
from ..utils.progress import Reporter, announce_compilation
from .configuration.config import Config
from .configuration.settings import CountTableSettings
from .gates.findings import population_of
from .record.state_folder import file_digest, state_folder, write_file
from .table.kept_table import KeptTable, table_identity

if TYPE_CHECKING:
    from ..release.queries import Query
    from ..treatment.random.key import Key

# The folder of answers and of the treated table before it is published, in the state folder.
FOLDER = "release"
# The ends of a release: all is published; a gate fails; anything else.
PUBLISHED, HELD_BACK, FAILED, UNMET = "published", "held back", "failed", "not met"


class NightlyRelease(NamedTuple):
    """The release that a configuration asks for; checked before the table is read.

    plan, secret: the plan of treatments and its key. queries: of the ledger. outputs: the files by key.
    """

    config: Config
    plan: Plan | None
    secret: Key | None
    queries: Sequence[Query]
    outputs: Mapping[str, Path]

    @classmethod
    def from_config(cls, config: Config) -> NightlyRelease | None:
        """Return what is released; None if nothing is.

        Raises InputError or OutputError, with the key of the configuration: a plan, query file or key that cannot be
        used, no or a damaged ledger, an output that cannot be written.
        """
        asked, resolve = config.settings.release, config.resolve
        outputs = {key: resolve(path) for key, path in asked.outputs.items()}
        if not outputs:
            return None
        for key, file in outputs.items():
            with _about(key):
                check_output(file, True, endings=(".json",) if key == "release.answers" else WRITTEN_ENDINGS)
        plan, secret, queries = None, None, []
        if asked.plan is not None:
            with _about("release.plan", "plan: "):
                plan = Plan.load(resolve(asked.plan))
            with _about("release.key", "key: "):
                secret = find_key(plan, None if asked.key is None else resolve(asked.key), None)
        if asked.queries is not None and asked.ledger is not None:
            from ..release.ledger import as_budget
            from ..release.queries import read_queries

            ledger = resolve(asked.ledger)
            if not ledger.exists():
                raise InputError(f"release.ledger: there is no {ledger}. gpupif budget {ledger} --epsilon 1 makes one.")
            with _about("release.ledger", "ledger: "):
                terms = as_budget(ledger).terms
            with _about("release.queries", "queries: "):
                queries = read_queries(resolve(asked.queries))
            for number, query in enumerate(queries, 1):
                with _about(f"release.queries: query {number}"):
                    query.noises(terms)
        return cls(config, plan, secret, queries, outputs)

    @property
    def columns(self) -> list[tuple[str, Sequence[str] | None]]:
        """The columns that each key needs; None for all."""
        found: list[tuple[str, Any]] = [] if self.plan is None else [("release.plan", None)]
        for number, query in enumerate(self.queries, 1):
            found += [(f"release.queries: query {number}: {key}", [name]) for name, key in query.columns.items()]
        for number, table in enumerate(self.config.settings.release.tables or ()):
            for key in ("by", "value", "weights", "record_id"):
                given = getattr(table, key)
                names = [given] if isinstance(given, str) else given or []
                found.append((f"release.tables[{number}].{key}", names))
            if table.method == "cell-key" and table.record_id is None:
                found.append(("release.tables", None))
        return found

    def treat(self, table: KeptTable, state: Path) -> tuple[Path | None, str | None]:
        """Treat the table by the plan, into a file of the state folder; return its path, and why it is not released.

        The path is None without a plan, the reason is None if the treated table meets the criteria of the plan. The
        caller deletes the file. Raises GpupifError with the key of the configuration.
        """
        if self.plan is None:
            return None, None
        # A file that a killed run left is replaced.
        treated = state_folder(state / FOLDER) / f"treated-{self.outputs['release.output'].name}"
        with _about("release.plan", "plan: "), Reporter() as report, announce_compilation():
            options = OutputOptions.from_arguments(treated, overwrite=True)
            people = population_of(self.config.settings.score, self.config.resolve)
            done = treat_source(table, options, self.plan, self.secret, report, True, people)
        return treated, done.record.unmet

    def publish(self, table: KeptTable, state: Path, treated: Path | None) -> dict[str, Any]:
        """Release all, and return the facts for the record. Nothing is published, or charged, before all is made.

        treated: the result of `treat`. Raises GpupifError with the key of the configuration, and OSError.
        """
        asked = self.config.settings.release
        counted = [self._count(number, own, table) for number, own in enumerate(asked.tables or ())]
        facts: dict[str, Any] = {}
        if self.queries:
            facts, answers = self._answers(table, state_folder(state / FOLDER))
            # They are paid for and kept: a run that fails from here on is run again, and publishes them.
            with _about("release.answers"):
                write_text(answers, self.outputs["release.answers"], overwrite=True)
        for number, found in enumerate(counted):
            key = f"release.tables[{number}].output"
            with _about(key):
                found.write(self.outputs[key], overwrite=True)
        if treated is not None:
            output = self.outputs["release.output"]
            with _about("release.output"), replacing(output, True) as sink, treated.open("rb") as source:
                shutil.copyfileobj(source, sink)
        digests = {key: file_digest(file) for key, file in self.outputs.items()}
        files = [{"key": key, "size": size, "digest": digest} for key, (size, digest) in digests.items()]
        return {"status": PUBLISHED, "files": files, **facts}

    def _count(self, number: int, asked: CountTableSettings, table: KeptTable) -> Any:
        """Return a table of counts. number: its place in the configuration."""
        from ..release.tables import tables

        resolve, key = self.config.resolve, self.config.settings.release.key
        given = asked.model_dump(exclude={"output"})
        given["key"] = resolve(key) if key is not None and asked.is_keyed else None
        given["p_table"] = None if asked.p_table is None else resolve(asked.p_table)
        try:
            return tables(table, **given)
        except GpupifError as error:
            named = str(error).partition(": ")[0]
            is_key = named in CountTableSettings.model_fields
            raise error.about(f"release.tables[{number}]" + f".{named}" * is_key, f"{named}: " * is_key) from None

    def _answers(self, table: KeptTable, folder: Path) -> tuple[dict[str, Any], str]:
        """Return the facts of the charge, and the answers as JSON: those that this input was charged for, or new ones.

        What is spent and left is as of today, whenever the answers were drawn.

        Raises InputError if the answers to a charge were lost, or if the ledger lacks the charge of kept answers.
        """
        from ..release.answers import answer_as
        from ..release.ledger import as_budget

        asked, resolve = self.config.settings.release, self.config.resolve
        assert asked.ledger is not None
        digest = self._digest(table)
        remark, file = f"nightly release {digest}", folder / f"answers-{digest}.json"
        with _about("release.ledger", "ledger: "):
            budget = as_budget(resolve(asked.ledger))
        paid, kept = [charge.number for charge in budget.charges if remark in charge.what], _read(file)
        if kept is not None and not paid:
            raise InputError(
                f"release.ledger: {budget.path} lacks the charge for this table and these queries, which were answered "
                "before. Put back the ledger that was charged."
            )
        if kept is None and paid and asked.draw_again != paid[-1]:
            raise InputError(
                f"release.ledger: charge {paid[-1]} of {budget.path} paid for the answers to this table, and a crash "
                "lost them, or they are not in this state folder. Nothing is drawn for free: to be charged again, and "
                f"have them drawn anew, run once with --set release.draw_again={paid[-1]}."
            )
        epsilon = 0.0 if kept else sum(query.epsilon for query in self.queries)
        if kept is None:
            try:
                found = answer_as(table, self.queries, budget, f"nightly: {table_identity(self.config)}", [remark])
            except GpupifError as error:
                is_of_ledger = str(error).startswith(("budget: ", "ledger: ", "table: ", f"{budget.path}: "))
                key = "release.ledger" if is_of_ledger else "release.queries"
                raise error.about(key, "budget: ", "ledger: ") from None
            kept = found.to_dict()
            self._keep(file, _as_text(kept))
        today = budget.state.facts
        facts = {name: today[name] for name in ("spent", "left", "head")}
        return {"epsilon": epsilon, **facts}, _as_text({**kept, "budget": today})

    def _keep(self, file: Path, answers: str) -> None:
        """Write new answers into the state folder. Raises OutputError, after the answers were saved elsewhere."""
        try:
            write_file(file, answers.encode())
        except (GpupifError, OSError) as error:
            output = self.outputs["release.answers"]
            where = f"in {output}"
            try:
                write_text(answers, output, overwrite=True)
            except (GpupifError, OSError):
                print(answers, flush=True)
                where = "on standard output"
            raise OutputError(f"{str(error).rstrip('.')}. The answers were charged, and are {where}.") from None

    def _digest(self, table: KeptTable) -> str:
        """Return a digest of what is asked of which content: equal digests have equal answers."""
        # Names of folders may hold values of columns.
        content = sorted([str(Path(file.path).parent), file.digest] for file in table.files)
        document = [
            content,
            self.config.settings.input.separator,
            [[query.ask, asdict(query)] for query in self.queries],
        ]
        return blake2b(json.dumps(document, sort_keys=True).encode(), digest_size=16).hexdigest()


def _read(file: Path) -> dict[str, Any] | None:
    """Return kept answers; None if there are none, or damaged ones."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        return dict(parse_json(file.read_bytes()))
    return None


def _as_text(answers: Mapping[str, Any]) -> str:
    return f"{json_text(answers)}\n"


@contextlib.contextmanager
def _about(key: str, *words: str) -> Iterator[None]:
    """Have errors begin with a key of the configuration, in place of words."""
    try:
        yield
    except GpupifError as error:
        raise error.about(key, *words) from None
