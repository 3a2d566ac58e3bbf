"""The commands to go on with, once columns have roles, ready to be copied into a shell."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ..attack.roles import Roles

SCORES, FOLDER = "scores.parquet", "scores"


def next_commands(
    table: str, roles: Roles, file: str, written: bool, options: Sequence[str] = (), on_cluster: bool = False
) -> list[str]:
    """Commands about a table, in an order that makes sense, each as a shell takes it.

    table: its path. file: of its roles; written: whether it is there. options: how the table is read, which all
    commands have to be told. on_cluster: scores are written to a folder.
    """
    how = [*options]
    commands = [] if written else [["inspect", table, "-o", file, *how]]
    with_roles = [table, "--roles", file, *how]
    if roles.quasi_identifiers:
        commands += [["risk", *with_roles], ["suda", *with_roles]]
        if len(roles.quasi_identifiers) > 1:
            commands.append(["toxic", *with_roles])
        commands.append(["score", *with_roles, "-o", FOLDER if on_cluster else SCORES])
    return [shlex.join(["gpupif", *command]) for command in commands]
