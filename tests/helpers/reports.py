"""Reports: what is in their page, as a reader of HTML sees it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any


@dataclass
class Page(HTMLParser):
    """A page. tags: name and attributes of each element. scripts: their attributes and texts. tables: by caption."""

    text: str
    tags: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    scripts: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    tables: dict[str, list[list[str]]] = field(default_factory=dict)

    def __post_init__(self):
        super().__init__(convert_charrefs=True)
        self._open, self._words = [], []
        self.feed(self.text)
        self.close()
        self.words = " ".join("".join(self._words).split())

    @classmethod
    def read(cls, path):
        """Return the page in a file."""
        return cls(Path(path).read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attributes), ""))
        elif tag == "caption":
            self._caption = ""
        elif tag == "tr":
            self.tables[self._caption].append([])
        elif tag in ("td", "th"):
            self.tables[self._caption][-1].append("")

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass
        if tag == "caption":
            self.tables[self._caption] = []

    def handle_data(self, data):
        if "script" in self._open:
            attributes, text = self.scripts[-1]
            self.scripts[-1] = attributes, text + data
        elif "style" not in self._open:
            self._words.append(data)
            if "caption" in self._open:
                self._caption += data
            elif {"td", "th"} & set(self._open):
                self.tables[self._caption][-1][-1] += data

    @property
    def figures(self):
        """The figures, as Plotly gets them."""
        return json.loads(next(text for attributes, text in self.scripts if attributes.get("id") == "figures"))

    @property
    def policy(self):
        """The directives of the Content-Security-Policy, by name."""
        (content,) = (tag[1]["content"] for tag in self.tags if tag[1].get("http-equiv") == "Content-Security-Policy")
        return {words[0]: words[1:] for words in (directive.split() for directive in content.split(";"))}

    def record(self, caption, row=0):
        """A row of a table, by heading."""
        headings, *rows = self.tables[caption]
        return dict(zip(headings, rows[row], strict=True))

    def check_closed(self):
        """Nothing is loaded from elsewhere, and no other script can run than those that the policy names."""
        assert not {"link", "iframe", "object", "embed", "base", "form", "img"} & {tag for tag, _ in self.tags}
        for tag, attributes in self.tags:
            assert not [name for name in attributes if name.startswith("on") or name in ("src", "style")], tag
            assert re.fullmatch(r"#section-\d+", attributes.get("href", "#section-1"))
        run = [text for attributes, text in self.scripts if "type" not in attributes]
        hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in run]
        assert self.policy["default-src"] == ["'none'"]
        assert self.policy["script-src"] == hashes
        assert len(run) == 2
        assert self.policy["img-src"] == ["data:"]
        assert not {"connect-src", "frame-src", "font-src"} & set(self.policy)
