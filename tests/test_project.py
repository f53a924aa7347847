"""Conventions: documented modules, public names, short functions, documents without dead links."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

import fencepost
import fencepost.spark

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "fencepost"
MODULES = sorted(PACKAGE.rglob("*.py"))
DOCUMENTS = sorted(
    path for folder in ("", "docs/**/", "decisions/") for path in ROOT.glob(f"{folder}*.md")
)
MARKDOWN_LINK = re.compile(r"\[[^\]]*\]\((?![a-z]+:)([^)#\s]+)[^)]*\)")  # no URL, no section alone
PATH_IN_BACKTICKS = re.compile(r"`((?:[\w-]+/)+[\w.-]+\.(?:py|js|md))`")

# A list by hand, because adding or removing a public name is a decision.
PUBLIC_NAMES = [
    "AsyncClient",
    "Client",
    "Composite",
    "DeliveryError",
    "Detection",
    "Detector",
    "Encounter",
    "Explanation",
    "FencepostError",
    "FencepostWarning",
    "GeometryError",
    "GeometryProblem",
    "IndexingError",
    "LanguageError",
    "Matcher",
    "ModelError",
    "Notification",
    "Relation",
    "RequestRefused",
    "Roaming",
    "SafeClient",
    "SafeRegion",
    "SafeRegions",
    "StoreError",
    "Tracker",
    "Unreachable",
    "relate",
    "relate_one_to_many",
    "relate_pairs",
    "simplify",
    "simplify_many",
    "verify_webhook",
]

MAX_LINES = 90
# Longer functions; remove an entry when its function has been shortened.
LONGER = {
    ("kernels/match/region_walk.py", "_walk_area"),
}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_public_names() -> None:
    assert sorted(fencepost.__all__) == sorted(PUBLIC_NAMES)


def test_completion_offers_public_names_only() -> None:
    assert dir(fencepost) == sorted([*PUBLIC_NAMES, "__version__"])
    assert dir(fencepost.spark) == sorted(fencepost.spark.__all__)


@pytest.mark.parametrize("name", PUBLIC_NAMES)
def test_public_names_exist_and_are_documented(name: str) -> None:
    assert getattr(fencepost, name).__doc__


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_have_a_docstring(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_functions_are_short() -> None:
    longer = {
        (str(path.relative_to(PACKAGE)), node.name): node.end_lineno - node.lineno + 1
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if node.end_lineno is not None and node.end_lineno - node.lineno >= MAX_LINES
    }
    new = {name: lines for name, lines in longer.items() if name not in LONGER}
    assert not new, f"over {MAX_LINES} lines; split them: {new}"
    short = LONGER - longer.keys()
    assert not short, f"no longer over {MAX_LINES} lines; remove from LONGER: {short}"


@pytest.mark.parametrize("path", sorted((PACKAGE / "kernels").rglob("*.py")), ids=name_of)
def test_kernels_import_only_numpy_and_numba(path: Path) -> None:
    allowed = {"numpy", "numba", "llvmlite", *sys.stdlib_module_names}  # llvmlite is part of Numba
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            assert name.split(".")[0] in allowed or name.startswith("fencepost.kernels."), name


def test_a_release_is_in_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## {fencepost.__version__}\n" in changelog


def test_the_code_map_names_every_package() -> None:
    code_map = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    parts = [path.name for path in PACKAGE.glob("*.py")]
    parts += [f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")]
    assert [part for part in parts if f"`{part}`" not in code_map and part != "__init__.py"] == []


def test_the_code_map_names_existing_files_only() -> None:
    code_map = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`", code_map)) - {"__init__.py"}
    assert named
    assert [
        name for name in named if not (PACKAGE / name.removeprefix("src/fencepost/")).exists()
    ] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_documents_name_existing_files_only(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    links = set(MARKDOWN_LINK.findall(text))
    assert [link for link in links if not (document.parent / link).exists()] == []
    named = set() if document.name == "CHANGELOG.md" else set(PATH_IN_BACKTICKS.findall(text))
    assert [
        name for name in named if not any((root / name).exists() for root in (ROOT, PACKAGE))
    ] == []


@pytest.mark.parametrize("package", sorted(PACKAGE.rglob("*/__init__.py")), ids=name_of)
def test_a_package_lists_its_modules(package: Path) -> None:
    described = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8"))) or ""
    modules = {path.stem for path in package.parent.glob("*.py")} - {"__init__", "__main__"}
    modules |= {f"{path.parent.name}/" for path in package.parent.glob("*/__init__.py")}
    assert set(re.findall(r"^- `(\w+/?)`: ", described, re.MULTILINE)) == modules
