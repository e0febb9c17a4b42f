"""How figures fit a document: dark or light, width, font, titles and file formats."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from msgspec import UNSET
from msgspec.structs import asdict

from warplog.records.config import FigureSettings


@dataclass(frozen=True)
class Settings:
    """The settings of all figures.

    Attributes:
        dark: Whether the ground is dark; lightness is inverted and hue kept.
        width_in: Width in inches, at which the text has `font_pt`.
        font: Family name of an installed font; characters that it lacks come from DejaVu Sans.
        font_pt: Size of all text except titles, in points.
        titles: Whether a title stands above, and origin and notes below; otherwise they are written to a text file,
            for a caption.
        formats: Suffixes of the files: png, svg, pdf.
    """

    dark: bool = False
    width_in: float = 7.2
    font: str = "DejaVu Sans"
    font_pt: float = 8.0
    titles: bool = True
    formats: tuple[str, ...] = ("png", "svg")

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of a figure's files, without that of its numbers."""
        return (*(f".{name}" for name in self.formats), *(() if self.titles else (".txt",)))


WEB = Settings()
STYLES: Mapping[str, Settings] = {
    "web": WEB,
    "paper": Settings(font_pt=7.0, titles=False, formats=("pdf", "svg", "png")),
    "dark": Settings(dark=True),
}


def settings_of(chosen: FigureSettings) -> Settings:
    """Returns the settings of a style, with the other keys of the configuration in place of its own."""
    own = {key: value for key, value in asdict(chosen).items() if key != "style" and value is not UNSET}
    return replace(STYLES[chosen.style], **own)


def for_pages(settings: Settings) -> Settings:
    """Returns the settings with PNG among the formats, which pages and the report show."""
    return replace(settings, formats=tuple(dict.fromkeys(("png", *settings.formats))))
