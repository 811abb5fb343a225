#!/usr/bin/env python3
"""Whether every source of a module includes only headers of modules that it declares, and of those that these use.

  tools/check-includes.py [SOURCE_FOLDER]
"""
import pathlib
import re
import sys


def declared(folder):
    """Module → the modules that its CMakeLists.txt names."""
    uses = {}
    for file in sorted(folder.glob("*/CMakeLists.txt")):
        found = re.search(r"cgcn_module\((\w+)([^)]*)\)", file.read_text())
        if found:
            words = found.group(2).split()
            names = words[words.index("USES") + 1:] if "USES" in words else []
            uses[found.group(1)] = names[:names.index("LINKS")] if "LINKS" in names else names
        found = re.search(r"target_link_libraries\(python_core PRIVATE ([^)]*)\)", file.read_text())
        if found:  # the one module that is no static library
            uses["python"] = [name.removeprefix("cgcn_") for name in found.group(1).split()]
    return uses


def closure(name, uses):
    seen, waiting = {name}, [name]
    while waiting:
        for used in uses.get(waiting.pop(), []):
            if used not in seen:
                seen.add(used)
                waiting.append(used)
    return seen


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1] / "src")
    uses = declared(folder)
    if len(uses) < 5:
        sys.exit(f"{folder}: no modules were found")
    breaches = []
    for name in uses:
        allowed = closure(name, uses)
        for file in sorted((folder / name).rglob("*")):
            if file.suffix not in (".h", ".cc"):
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                found = re.match(r'\s*#include "(\w+)/', line)
                if found and found.group(1) in uses and found.group(1) not in allowed:
                    breaches.append(f"{file.relative_to(folder.parent)}:{number}: {name} does not declare {found.group(1)}")
    print("\n".join(breaches) if breaches else f"{len(uses)} modules include what they declare")
    sys.exit(1 if breaches else 0)


if __name__ == "__main__":
    main()
