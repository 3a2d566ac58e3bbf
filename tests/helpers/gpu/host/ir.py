"""LLVM IR as numba-cuda writes it for a GPU, made IR that any machine's LLVM compiles."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

import llvmlite.binding as llvm
import nvidia

HERE = Path(__file__).parent
ENTRY = "kernel"
# Lines that say which GPU and which IR it is, and what the linker is to keep.
ONLY_GPU = re.compile(r'^(scored column |; ModuleID|source_filename|!nvvm|!"nvvm|@"?llvm\.used).*\n?', re.MULTILINE)
# Functions of Numba, and their environments.
NUMBA_NAME = re.compile(r'"?(_ZN[\w$.]+)"?')
DEFINED = re.compile(r'^define [^@]*@"?(_ZN[\w$.]+)', re.MULTILINE)
PARAMETER = re.compile(r"(i64|double|[\w* {},\[\]]+\*) %")


def portable(modules: Sequence[str], entry: str) -> list[str]:
    """Modules of IR for a GPU as IR for any machine: those of the kernel, ENTRY, and of all functions that it calls.

    Registers, barriers and other intrinsics become functions `host.*` (see machine.ll), shared and constant memory
    plain memory. numba-cuda's names, and what it links beside what is called, depend on what was compiled before; the
    text that is returned does not.
    """
    where = {name: text for text in modules for name in DEFINED.findall(text)}
    names = {entry: ENTRY}
    called = [where[entry]]
    # Grows meanwhile.
    for text in called:
        for name in NUMBA_NAME.findall(text):
            if name not in names:
                names[name] = f"device.{len(names)}"
                if name in where and where[name] not in called:
                    called.append(where[name])
    return [NUMBA_NAME.sub(lambda found: names[found[1]], _without_gpu(text)) for text in called]


def _without_gpu(text: str) -> str:
    text = ONLY_GPU.sub("", text)
    text = re.sub(r" addrspace\(\d+\)", "", text).replace("addrspacecast", "bitcast")
    text = re.sub(r'@"?llvm\.nvvm\.([\w.]+)"?', r"@host.\1", text)
    # Linked even where what calls it comes later; of Numba's environments, unused by kernels, each module brings one.
    return text.replace("define linkonce_odr", "define weak_odr").replace("= common global", "= internal global")


def parameters(modules: Sequence[str]) -> list[str]:
    """The types of the kernel's parameters: i64, double or ptr."""
    header = next(found for text in modules if (found := re.search(rf"^define void @{ENTRY}\((.*)\)", text, re.M)))
    return [re.sub(r".*\*", "ptr", kind) for kind in PARAMETER.findall(header[1])]


def call_of(kinds: Sequence[str]) -> str:
    """A module with `host.call`, which calls the kernel with the parameters that words hold."""
    loads = "".join(
        f"  %p{place} = getelementptr i64, ptr %words, i64 {place}\n  %a{place} = load {kind}, ptr %p{place}\n"
        for place, kind in enumerate(kinds)
    )
    passed = ", ".join(f"{kind} %a{place}" for place, kind in enumerate(kinds))
    return (
        f"declare void @{ENTRY}({', '.join(kinds)})\n"
        f"define void @host.call(ptr %words) {{\n{loads}  call void @{ENTRY}({passed})\n  ret void\n}}\n"
    )


@functools.cache
def libdevice_file() -> Path:
    """NVIDIA's functions for devices, which numba-cuda[cu13] brings."""
    return next(
        found for folder in nvidia.__path__ for found in sorted(Path(folder).glob("*/nvvm/libdevice/libdevice.*.bc"))
    )


@functools.cache
def libdevice() -> str:
    """NVIDIA's own log, pow, ..., as IR of any machine."""
    return _without_gpu(str(llvm.parse_bitcode(libdevice_file().read_bytes())))


def runtime() -> list[str]:
    """What kernels and libdevice are linked with: threads and what a GPU has in hardware."""
    return [(HERE / name).read_text() for name in ("threads.ll", "machine.ll")]
