"""Prints what the packages need to know about a Linux binary, on one line:

1. the architecture: x86_64 or aarch64
2. the libc: gnu, or musl for a static binary
3. yes if it loads libgcc_s, or no
4. the oldest glibc that has every symbol version it asks for; nothing for a static binary
"""

import re
import subprocess
import sys

MACHINES = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}
# What PEP 600 lets a manylinux wheel expect on every system.
SYSTEM_LIBRARIES = {"libgcc_s.so.1", "libstdc++.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libc.so.6", "libpthread.so.0",
                    "libutil.so.1", "libresolv.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
# Symbol versions that are not numbers, with the release that brought them.
NAMED_VERSIONS = {"ABI_DT_RELR": (2, 36), "ABI_GNU2_TLS": (2, 42)}


def refuse(reason: str) -> None:
    sys.exit(f"{sys.argv[1]}: {reason}")


def glibc_version(name: str) -> tuple[int, ...]:
    if name in NAMED_VERSIONS:
        return NAMED_VERSIONS[name]
    if not re.fullmatch(r"\d+(\.\d+)+", name):
        refuse(f"needs the symbol version GLIBC_{name}, which belongs to no release of glibc")
    return tuple(map(int, name.split(".")))[:2]


def main() -> None:
    dump = subprocess.run(["readelf", "-W", "-h", "-l", "-d", "-V", sys.argv[1]], capture_output=True, text=True,
                          env={"LC_ALL": "C", "PATH": "/usr/local/bin:/usr/bin:/bin"}).stdout
    machine = re.search(r"Machine:\s+(.*)", dump)
    if not machine or machine[1] not in MACHINES:
        refuse(f"no binary for x86_64 or aarch64 Linux ({machine[1] if machine else 'no ELF file'})")
    needed = set(re.findall(r"\(NEEDED\)\s+Shared library: \[(.*)\]", dump))
    interpreter = re.search(r"Requesting program interpreter: (.*)\]", dump)
    glibc = ""
    if needed or interpreter:
        if unknown := needed - SYSTEM_LIBRARIES:
            refuse(f"needs {', '.join(sorted(unknown))}, which not every Linux system has")
        versions = [glibc_version(name) for name in re.findall(r"Name: GLIBC_(\S+)", dump)]
        if not versions:
            refuse("is dynamically linked, but not to glibc")
        glibc = ".".join(map(str, max(versions)))
    print(MACHINES[machine[1]], "gnu" if glibc else "musl", "yes" if "libgcc_s.so.1" in needed else "no", glibc)


main()
