"""Renders a worklog as one self-contained HTML file, with figures, style sheet and syntax colours."""

import base64
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplog.core.errors import WarplogError
from warplog.core.text import one_line, visible
from warplog.figures.shared.memory_boxes import EXPLANATION
from warplog.metrics import STALL_REASONS
from warplog.worklog.cells import Cells
from warplog.worklog.code.boxes import Part, parts
from warplog.worklog.code.heat import Heat
from warplog.worklog.code.listing import Change, Line
from warplog.worklog.code.sources import SourceView
from warplog.worklog.page import Page, Picture, Section

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_MOST_PNG_BYTES = 8 << 20
_ANY = "|".join(STALL_REASONS)
_LONG = "|".join(reason for reason in STALL_REASONS if "_" in reason)
# Names of warp states in a sentence; "barrier" and "wait" only where they are used as names.
_QUOTED = re.compile(r"`([^`]+)`")
_STATES = re.compile(rf"\b(?:{_LONG})\b|(?<=\()(?:{_ANY})(?=[,;)])|(?<= is )(?:{_ANY})(?= \()")
_MENTION = re.compile(r"\b([\w.]+\.(?:cuh?|hpp|h)):(\d+)\b")
# A web address, also without its scheme, as in "siboehm.com/articles/22/CUDA-MMM"; the text is escaped.
_ADDRESS = re.compile(
    r"(?<![\w@/.-])(https?://)?((?:[a-z0-9-]+\.)+(?:ai|com|dev|edu|gov|io|net|org)\b"
    r"(?:/(?:[\w./~%#?=+:@-]|&amp;)*[\w/~#=+-])?)(?![\w-])"
)
# The kinds of tokens that are coloured, with their CSS class.
_COLOURS = {
    "Comment.Preproc": "cp",
    "Comment": "c",
    "Keyword": "k",
    "Literal.Number": "m",
    "Literal.String": "s",
}
_UNITS = re.compile(r"(?<=\d) (?=(?:[kMGT]B?|B|MHz|%)(?:\W|$))")


def html(page: Page, library: str = "") -> str:
    """Returns the page; every text in it is escaped.

    `library` is the JavaScript of `charts.library`; without it the page has no scripts and shows its figures only.

    Raises:
        WarplogError: if a figure is missing, too large or not a PNG.
    """
    from markupsafe import Markup

    own = Look(Markup(f"<style>\n{css()}</style>"), _script(page, library))  # noqa: S704
    return render("page.html.j2", own, page=page, alone=False)


@dataclass(frozen=True)
class Look:
    """How a page gets what it shows besides text.

    Attributes:
        style, script: Elements for the head and the end of the body.
        root: The path to the folder of the site; "" for a page that is a single file, with figures embedded.
    """

    style: "Markup"
    script: "Markup"
    root: str = ""


def render(template: str, look: Look, **content: Any) -> str:
    """Returns a page made of a template of this folder; every text in it is escaped."""
    shown = _environment().get_template(template)
    return shown.render(style=look.style, script=look.script, root=look.root, **content) + "\n"


def linked_script(page: Page, library: str) -> "Markup":
    """Returns the elements that draw the charts with the library at the address `library`."""
    from markupsafe import Markup, escape

    if not page.chart:
        return Markup("")
    return Markup(f'<script src="{escape(library)}"></script>\n<script>{_own_script(page)}</script>')  # noqa: S704


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    note = f"Memory charts show the longest kernel. {EXPLANATION}"
    environment.globals.update(memory_note=note)
    environment.filters.update(
        states=_mark_states, image=_image, anchor=_anchor, width=_width, sentence=_sentence, quoted=_mark_quoted,
        changes=_changes, source=_source, linked=_linked, place=_place, web=_web, name=_name, code=_code,
        counted=_counted, breaking=_breaking, groups=_groups, tally=_tally, shares=shares, address=_address,
    )  # fmt: skip
    return environment


def _finalize(value: object) -> object:
    """Shows hidden characters of a text as escapes; text that a filter has made safe is left alone."""
    return visible(value) if type(value) is str else value


def _mark_states(text: str) -> "Markup":
    """Escapes the text, marks names of warp states as code and puts no-break spaces before units."""
    from markupsafe import Markup, escape

    marked = _STATES.sub(r"<code>\g<0></code>", str(escape(one_line(text))))
    return Markup(_UNITS.sub("\u00a0", marked))  # noqa: S704


def _mark_quoted(text: str) -> "Markup":
    """Escapes the text and shows what stands between backticks, as in the header of a source, as code."""
    from markupsafe import Markup, escape

    return Markup(_QUOTED.sub(r"<code>\1</code>", str(escape(visible(text)))))  # noqa: S704


def _highlighted(lines: Sequence[Line]) -> "list[Markup]":
    """Returns the lines, escaped and with syntax colours; only comments, words, literals and directives have one."""
    from markupsafe import Markup, escape

    shown: list[Markup] = []
    for file, group in groupby(lines, key=lambda line: line.file):
        texts = tuple(line.text for line in group)
        shown += [
            Markup("").join(
                Markup('<span class="{}">{}</span>').format(kind, text) if kind else escape(text)
                for kind, text in pieces
            )
            for pieces in _pieces(file, texts)
        ]
    return shown


@cache
def _pieces(file: str, lines: tuple[str, ...]) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Returns the pieces of each line with their CSS class, "" for those without a colour."""
    from pygments import lex  # type: ignore[import-untyped]
    from pygments.lexers import CudaLexer, PythonLexer  # type: ignore[import-untyped]

    lexer = PythonLexer if file.endswith(".py") else CudaLexer
    rows: list[list[tuple[str, str]]] = [[]]
    for token, text in lex("\n".join(visible(line) for line in lines), lexer(stripnl=False, ensurenl=False)):
        kind = _kind(str(token))
        for number, part in enumerate(text.split("\n")):
            if number:
                rows.append([])
            if part and rows[-1] and rows[-1][-1][0] == kind:
                rows[-1][-1] = kind, rows[-1][-1][1] + part
            elif part:
                rows[-1].append((kind, part))
    return tuple(tuple(row) for row in rows)


@cache
def _kind(token: str) -> str:
    return next((css for name, css in _COLOURS.items() if token.startswith(f"Token.{name}")), "")


@dataclass(frozen=True)
class _Shown:
    """A line of code with its colours, its heat, and what stands before it: the name of its file, or a gap."""

    line: Line
    text: "Markup"
    heat: Heat | None
    change: Change | None = None
    file: str = ""
    gap: bool = False


def _changes(section: Section) -> list[Part[_Shown]]:
    """Returns the lines of a diff in parts; lines of the parent, which are gone, belong to the file that follows."""
    changes = section.code.changes
    texts = _highlighted([change.line for change in changes])
    kept = [change.line.file for change in changes if change.kind != "gone"]
    lines: list[_Shown] = []
    current = ""
    for change, text in zip(changes, texts, strict=True):
        file = current if change.kind == "gone" and current else change.line.file
        file = kept[0] if change.kind == "gone" and not current and kept else file
        heat = section.heat.places.get((change.line.file, change.line.number))
        heat = heat if change.kind in ("new", "same") else None
        lines.append(_Shown(change.line, text, heat, change, file if file != current else ""))
        current = file
    return parts(lines, [_weight(line) for line in lines])


def _weight(line: _Shown) -> float:
    """Returns the share of samples of a line, and a little for one that differs from the parent's."""
    differs = line.change is not None and line.change.kind in ("new", "gone")
    return (line.heat.share if line.heat else 0.0) * (2 if differs else 1) + (1e-3 if differs else 0)


def _source(view: SourceView, section: Section) -> list[Part[_Shown]]:
    """Returns the lines of a source in parts."""
    lines, before = [], 0
    for line, text in zip(view.lines, _highlighted(view.lines), strict=True):
        heat = section.heat.places.get((line.file, line.number))
        lines.append(_Shown(line, text, heat, gap=before > 0 and line.number != before + 1))
        before = line.number
    return parts(lines, [_weight(line) for line in lines])


def _place(section: Section, file: str, number: int) -> str:
    """Returns the address of a line on the page."""
    return re.sub(r"[^A-Za-z0-9_.]", "-", f"{section.name}.{file}.{number}")


def _linked(text: str, section: Section) -> "Markup":
    """Escapes the text, and links every mention of a line, such as "naive.cu:27", to that line of the sources."""
    from markupsafe import Markup, escape

    lines = {(line.file, line.number) for view in section.sources for line in view.lines}

    def link(match: re.Match[str]) -> str:
        place = match[1], int(match[2])
        file, number = section.heat.moved.get(place, place)
        return (
            f'<a href="#{_place(section, file, number)}">{match[0]}</a>'
            if (file, number) in lines
            else match[0]
        )

    safe = text if isinstance(text, Markup) else escape(visible(text))
    return Markup(_MENTION.sub(link, str(safe)))  # noqa: S704


def _web(text: str) -> "Markup":
    """Escapes the text, and makes web addresses links; the page loads nothing from them."""
    from markupsafe import Markup, escape

    def link(match: re.Match[str]) -> str:
        return f'<a href="{match[1] or "https://"}{match[2]}" rel="noopener">{match[0]}</a>'

    safe = text if isinstance(text, Markup) else escape(visible(text))
    return Markup(_ADDRESS.sub(link, str(safe)))  # noqa: S704


def _image(picture: Picture, root: str = "") -> str:
    """Returns the PNG as a data URI; in a site, with a path `root` to its folder, the address of its copy."""
    from PIL import Image

    if root:
        return f"figures/{picture.path.name}"

    try:
        if picture.path.stat().st_size > _MOST_PNG_BYTES:
            raise WarplogError(f"{picture.path}: larger than {_MOST_PNG_BYTES} bytes; draw it again")
        with Image.open(picture.path) as image:
            image.verify()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise WarplogError(f"{picture.path}: not a readable PNG ({error}); draw it again") from None
    return f"data:image/png;base64,{base64.b64encode(picture.path.read_bytes()).decode()}"


def _name(text: object) -> "Markup":
    """Marks a name, whose digits are no numbers."""
    from markupsafe import Markup

    return Markup('<span class="name">{}</span>').format(visible(str(text)))


def _breaking(name: str) -> "Markup":
    """Returns a name that may be broken after an underscore."""
    from markupsafe import Markup, escape

    return Markup("_<wbr>").join(escape(part) for part in visible(name).split("_"))


def _code(text: object) -> "Markup":
    from markupsafe import Markup

    return Markup("<code>{}</code>").format(visible(str(text)))


def _counted(count: int) -> "Markup":
    """Marks a number that is no cell of a table: how many things the page shows."""
    from markupsafe import Markup

    return Markup('<span class="count">{}</span>').format(count)


def _groups(rows: Sequence[Cells], column: str) -> list[tuple[str, list[Cells]]]:
    """Returns rows that follow each other and agree in a column, by its value."""
    return [(key, list(group)) for key, group in groupby(rows, key=lambda row: str(row.raw(column)))]


def _tally(rows: Sequence[Cells], column: str) -> "Markup":
    """Returns how many rows have each code of a column, in their order: "2 confirmed, 1 refuted"."""
    from markupsafe import Markup

    counts = Counter(
        "not judged"  # a claim with a value
        if row.raw(column) == "not_measurable" and row.measured
        else str(row.raw(column)).replace("_", " ")
        for row in rows
    )
    return Markup(", ").join(_counted(count) + Markup(" {}").format(code) for code, count in counts.items())


def shares(sections: Sequence[Section]) -> list[float]:
    """Returns the known shares of the baseline in percent."""
    shares = (float(str(section.place.raw("share_pct"))) for section in sections)
    return [share for share in shares if share > 0]


def _address(name: str, alone: bool) -> str:
    """Returns the address of a variant: on its family's page, or of its own page if the step stands alone."""
    return f"{name}.html" if alone else f"#{_anchor(name)}"


def _anchor(name: str) -> str:
    return "rung-" + re.sub(r"[^A-Za-z0-9_]", "-", name)


def _width(percent: float) -> str:
    """Formats a percentage for CSS, clipped to the range from 0 to 100."""
    return f"{min(100.0, max(0.0, percent)):.1f}"


def _sentence(text: str) -> str:
    """Returns the text with a capital letter and a full stop."""
    text = one_line(text)
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) or not text else ".")


def _script(page: Page, library: str) -> "Markup":
    """Returns the scripts that draw the charts; "" without the library or without charts.

    The specification holds names from the tables: it is JSON in which `<` is escaped, so that it ends no element.
    """
    from markupsafe import Markup

    if not library or not page.chart:
        return Markup("")
    return Markup(f"<script>{library}</script>\n<script>{_own_script(page)}</script>")  # noqa: S704


def _own_script(page: Page) -> str:
    own = (Path(__file__).parent / "charts.js").read_text(encoding="utf-8")
    spec = page.chart.replace("<", "\\u003c")
    return f"const SPEC = {spec};\n{own}"


def css() -> str:
    """Returns the rules of the style sheet."""
    return (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
