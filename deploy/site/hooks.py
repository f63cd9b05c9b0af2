"""Turns the documents into a site: pages from the repository's root, and links to its files.

The documents are read on their own as well, so their links lead to files of the repository. Here
README.md is the first page, the root's other documents and the READMEs of the examples are pages
next to those of docs/, and every other file that a document links to is copied unchanged.
"""

import posixpath
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

REPOSITORY: Final = Path(__file__).parents[2]
FILES: Final = "repository"  # Where files other than documents go.
OUTSIDE_DOCS: Final = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "vulnerabilities.md",
    "examples/README.md": "examples.md",
    "examples/clients/README.md": "examples-clients.md",
    "examples/frameworks/README.md": "examples-frameworks.md",
    "examples/http/README.md": "examples-http.md",
}

_LINK: Final = re.compile(r"\[([^\]]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")
_FENCE: Final = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path, uri in OUTSIDE_DOCS.items():
        content = (REPOSITORY / path).read_text(encoding="utf-8")
        files.append(File.generated(config, uri, content=content))
    for page in [*files.documentation_pages()]:
        for _, target in _targets(_repository_path(page.src_uri), page.content_string):
            uri = _uri_of(target)
            if uri is not None and uri.startswith(FILES) and files.get_file_from_path(uri) is None:
                copied = File.generated(config, uri, abs_src_path=str(REPOSITORY / target))
                files.append(copied)
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Point links to where the site has their targets."""
    here = _repository_path(page.file.src_uri)

    def link(match: re.Match[str]) -> str:
        text, target, anchor = match[1], _resolved(here, match[2]), match[3] or ""
        uri = _uri_of(target)
        if uri is None:
            return text
        start = posixpath.dirname(page.file.src_uri)
        return f"[{text}]({posixpath.relpath(uri, start or '.')}{anchor})"

    parts = _FENCE.split(markdown)
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in parts)


def _repository_path(uri: str) -> str:
    """Where a page of the site comes from."""
    for path, page in OUTSIDE_DOCS.items():
        if page == uri:
            return path
    return f"docs/{uri}"


def _targets(here: str, markdown: str) -> list[tuple[str, str]]:
    return [(match[2], _resolved(here, match[2])) for match in _LINK.finditer(markdown)]


def _resolved(here: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(here), link))


def _uri_of(target: str) -> str | None:
    """Where a file of the repository is in the site; None if it is not, as a directory."""
    path = REPOSITORY / target
    if path.is_dir():
        target, path = f"{target}/README.md", path / "README.md"
    if target in OUTSIDE_DOCS:
        return OUTSIDE_DOCS[target]
    if not path.is_file():
        return None
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    return f"{FILES}/{target}.txt"
