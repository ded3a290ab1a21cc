"""Output of the command: printable text, its width, hints after errors, and commands to run next."""

from calibrant.bench.terminal.streams import PrintableStream, drawn_on, printable, printable_streams
from calibrant.bench.terminal.width import stated_width, width_of

__all__ = ["PrintableStream", "drawn_on", "printable", "printable_streams", "stated_width", "width_of"]
