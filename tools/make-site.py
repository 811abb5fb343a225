#!/usr/bin/env python3
"""Builds the documents as a static site with search, and checks every link in it.

  tools/make-site.py FOLDER [--also PAGE.md]    exit 1: a dead link; 77: mkdocs is not installed (tools/install-packages.sh tests)

README.md is the first page; docs/*.md, the project's own documents, the examples, and the API of Python (from the docstrings) and
C++ (from the public header) follow. Everything comes from this folder and Debian's mkdocs: the site loads nothing from elsewhere.
"""
import ast
import html
import html.parser
import json
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = {"ARCHITECTURE.md": "architecture.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md",
           "SECURITY.md": "security.md"}
GUIDE = ["training", "partition", "formats", "report", "memory", "distributed", "python", "library"]
REFERENCE = ["options", "api-python", "api-cpp", "examples"]
BACKGROUND = ["methods", "generate", "reproduction", "performance", "scaling", "results"]


def rewrite_links(text, folder):
    """Links of a document in `folder` (a path below the repository) as the flat site has them."""
    def target(match):
        link = match[2]
        if re.match(r"[a-z]+:|#", link):
            return match[0]
        path, _, anchor = link.partition("#")
        place = (folder / path).as_posix()
        parts = []
        for part in place.split("/"):
            if part == "..":
                parts.pop()
            elif part != ".":
                parts.append(part)
        place = "/".join(parts)
        if place.startswith("docs/"):
            place = place[len("docs/"):]
        elif place == "README.md":
            place = "index.md"
        elif place in PROJECT:
            place = PROJECT[place]
        elif place.startswith("examples"):
            place, anchor = "examples.md", ""
        elif (ROOT / place).is_file():
            place = f"files/{place}"
        return f"{match[1]}({place}{'#' + anchor if anchor else ''})"
    return re.sub(r"(\[[^\]]*\])\(([^)\s]+)\)", target, text)


def show_bars(text):
    """`a\\|b` in a table: GitHub drops the backslash within code, mkdocs does not."""
    return re.sub(r"`([^`\n]*\\\|[^`\n]*)`", lambda code: f"<code>{html.escape(code[1]).replace(chr(92) + '|', '&#124;')}</code>", text)


def describe_function(function, heading, prefix=""):
    arguments = ast.unparse(function.args)
    result = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    text = f"{heading} {prefix}{function.name}\n\n```python\n{prefix}{function.name}({arguments}){result}\n```\n\n"
    doc = ast.get_docstring(function)
    return text + (f"```text\n{doc}\n```\n\n" if doc else "")


def python_api():
    names = next(ast.literal_eval(node.value) for node in ast.parse((ROOT / "python/clustergcn/__init__.py").read_text()).body
                 if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")  # type: ignore[attr-defined]
    text = "# Python API\n\nMade from the docstrings of the module `clustergcn`. [Python](python.md) explains it by examples.\n\n"
    for file in sorted((ROOT / "python/clustergcn").glob("_*.py")):
        for node in ast.parse(file.read_text()).body:
            if getattr(node, "name", None) not in names:
                continue
            if isinstance(node, ast.FunctionDef):
                text += describe_function(node, "##")
            elif isinstance(node, ast.ClassDef):
                text += f"## {node.name}\n\n```text\n{ast.get_docstring(node) or ''}\n```\n\n"
                for method in node.body:
                    if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                        text += describe_function(method, "###", f"{node.name}.")
    return text


def cpp_api():
    """The declarations of the public header, each with its comment."""
    text = "# C++ API\n\nMade from `#include <clustergcn/clustergcn.h>`. [The C++ library](library.md) explains it by an example.\n\n"
    block, depth, started = [], 0, False
    for line in (ROOT / "include/clustergcn/clustergcn.h").read_text().splitlines():
        started = started or line.startswith("namespace clustergcn")
        if not started or line.startswith("namespace") or line.startswith("}  // namespace"):
            continue
        if not line.strip() and depth == 0:
            block = []
            continue
        block.append(line)
        depth += line.count("{") - line.count("}")
        code = line.split("//")[0].rstrip()
        if depth == 0 and code.endswith(";"):
            declaration = next(part for part in block if not part.startswith("//"))
            found = re.match(r"(?:enum class|class|struct)(?: CLUSTERGCN_API)? (\w+)", declaration) or \
                re.search(r"(\w+)\(", declaration)
            if found and len(declaration) > 0 and found[1] != "using":
                text += f"## {found[1]}\n\n" if f"## {found[1]}\n" not in text else ""
            text += "```cpp\n" + "\n".join(block) + "\n```\n\n"
            block = []
    return text


def examples_page():
    text = "# Examples\n\nEvery one of them is run by the tests.\n\n"
    for file in sorted([*(ROOT / "examples").glob("*.py"), ROOT / "examples/embed/main.cc", ROOT / "examples/customers/make_tables.py"]):
        language = "python" if file.suffix == ".py" else "cpp"
        text += f"## {file.relative_to(ROOT / 'examples')}\n\n```{language}\n{file.read_text()}```\n\n"
    return text


def title_of(page):
    return next(line[2:] for line in page.read_text().splitlines() if line.startswith("# "))


def write_pages(pages, also):
    pages.mkdir()
    (pages / "index.md").write_text(rewrite_links((ROOT / "README.md").read_text(), Path("")))
    for file in (ROOT / "docs").glob("*.md"):
        (pages / file.name).write_text(show_bars(rewrite_links(file.read_text(), Path("docs"))))
    for name, page in PROJECT.items():
        (pages / page).write_text(rewrite_links((ROOT / name).read_text(), Path("")))
    for name, text in (("api-python", python_api()), ("api-cpp", cpp_api()), ("examples", examples_page())):
        (pages / f"{name}.md").write_text(text)
    if also:
        shutil.copy(also, pages)
    shutil.copytree(ROOT / "docs/pictures", pages / "pictures")
    for page in pages.glob("*.md"):
        for name in re.findall(r"\(files/([^)#]+)", page.read_text()):
            (pages / "files" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, pages / "files" / name)


def write_configuration(work, pages):
    def entries(names):
        return "".join(f"    - {json.dumps(title_of(pages / (name + '.md')))}: {name}.md\n" for name in names
                       if (pages / f"{name}.md").exists())
    known = {*GUIDE, *REFERENCE, *BACKGROUND, "index", *(page[:-3] for page in PROJECT.values())}
    others = sorted(page.stem for page in pages.glob("*.md") if page.stem not in known)
    (work / "mkdocs.yml").write_text(
        "site_name: clustergcn\ntheme:\n  name: readthedocs\n  highlightjs: false\nplugins:\n  - search\nuse_directory_urls: false\n"
        f"nav:\n  - clustergcn: index.md\n  - Guide:\n{entries(GUIDE)}  - Reference:\n{entries(REFERENCE)}"
        f"  - Background:\n{entries(BACKGROUND + others)}  - Project:\n{entries(page[:-3] for page in PROJECT.values())}")


def complete_theme(site):
    """Debian's mkdocs leaves two scripts of the theme out: jQuery, which is a package of its own, and one that is not needed."""
    for page in site.glob("*.html"):
        for name in re.findall(r'src="(?:\./)?(js/[^"]+)"', page.read_text()):
            jquery = Path("/usr/share/javascript/jquery/jquery.min.js")
            if (site / name).exists():
                continue
            if "jquery" in name and jquery.exists():
                shutil.copy(jquery, site / name)
            elif name == "js/theme_extra.js":
                (site / name).write_text("")


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids.update(value for name, value in attributes if name in ("id", "name") and value)
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        loaded = values.get("src") or (tag == "link" and values.get("href"))
        if loaded:
            self.loaded.append(loaded)


def check_links(site):
    pages, problems, links = {}, [], 0
    for file in site.rglob("*.html"):
        pages[file] = Links()
        pages[file].feed(file.read_text())
    for file, page in pages.items():
        if file.name in ("404.html", "search.html"):
            continue
        for link in page.links + page.loaded:
            place = urllib.parse.urlsplit(link)
            if place.scheme or place.netloc:
                if link in page.loaded and not link.startswith("data:"):
                    problems.append(f"{file.name} loads {link}")
                continue
            links += 1
            target = (file.parent / urllib.parse.unquote(place.path)).resolve() if place.path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                problems.append(f"{file.name}: no such page: {link}")
            elif place.fragment and target in pages and place.fragment not in pages[target].ids:
                problems.append(f"{file.name}: no such place on the page: {link}")
    return problems, len(pages), links


def main():
    arguments = sys.argv[1:]
    also = Path(arguments.pop(arguments.index("--also") + 1)) if "--also" in arguments else None
    if also:
        arguments.remove("--also")
    if not shutil.which("mkdocs"):
        print("SKIPPED: mkdocs is not installed (tools/install-packages.sh tests)")
        return 77
    site = Path(arguments[0]).resolve()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        write_pages(work / "docs", also)
        write_configuration(work, work / "docs")
        done = subprocess.run(["mkdocs", "build", "--quiet", "--clean", "--site-dir", site], cwd=work, text=True, capture_output=True)
        if done.returncode != 0:
            print(done.stderr, file=sys.stderr)
            return 1
    complete_theme(site)
    problems, pages, links = check_links(site)
    print("".join(f"{problem}\n" for problem in problems), end="", file=sys.stderr)
    print(f"{site}: {pages} pages, {links} links checked, {len(problems)} dead")
    return 1 if problems or not (site / "search/search_index.json").exists() else 0


if __name__ == "__main__":
    sys.exit(main())
