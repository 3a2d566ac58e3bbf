"""Machine code of kernels for this CPU, kept on disk between runs and workers."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from . import ir

# What fibers.py calls.
EXPORTED = ("host.run", "host.segv")

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
CPU, FEATURES = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
MACHINE = llvm.Target.from_default_triple().create_target_machine(cpu=CPU, features=FEATURES, opt=2, jit=True)


def object_code(modules: Sequence[str]) -> bytes:
    """The machine code of a kernel, from the cache where it is there; modules: see `ir.portable`."""
    file = _cache_folder() / f"{key(modules)}.o"
    try:
        return file.read_bytes()
    except FileNotFoundError:
        code = _compile(modules)
    # Whole or not at all, whoever else is writing it.
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        part = Path(folder) / file.name
        part.write_bytes(code)
        part.replace(file)
    return code


def _cache_folder() -> Path:
    """Beside the kernels that are compiled for the CPU engine."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpupif" / "device-on-host"
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def key(modules: Sequence[str]) -> str:
    """A name for all that the machine code depends on."""
    parts = [llvmlite.__version__, CPU, FEATURES, *ir.runtime(), *modules, Path(__file__).read_text()]
    digest = hashlib.sha256(ir.libdevice_file().read_bytes())
    for part in parts:
        digest.update(hashlib.sha256(part.encode()).digest())
    return digest.hexdigest()


def _compile(modules: Sequence[str]) -> bytes:
    whole = llvm.parse_assembly(modules[0])
    for text in (*modules[1:], *ir.runtime(), ir.call_of(ir.parameters(modules)), ir.libdevice()):
        whole.link_in(llvm.parse_assembly(text))
    whole.triple, whole.data_layout = MACHINE.triple, str(MACHINE.target_data)
    for function in whole.functions:
        if not function.is_declaration and function.name not in EXPORTED:
            function.linkage = "internal"
    whole.verify()
    builder = llvm.create_pass_builder(MACHINE, llvm.create_pipeline_tuning_options(speed_level=2))
    # Most of libdevice is not called.
    unused = llvm.create_new_module_pass_manager()
    unused.add_global_dead_code_eliminate_pass()
    unused.run(whole, builder)
    builder.getModulePassManager().run(whole, builder)
    return MACHINE.emit_object(whole)
