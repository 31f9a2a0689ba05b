"""Draw the diagrams of architectures.md: `python docs/diagrams/draw.py` writes every SVG beside this file."""

from collections.abc import Callable
from pathlib import Path

from of_all import attention_masks, family, frames
from of_elmo import character_cnn, cnn_softmax, elmo, scalar_mix
from of_tasks import heads, masking, tdmca
from of_transformers import bert, gpt, nezha
from svg import Drawing

DIAGRAMS: tuple[Callable[[], Drawing], ...] = (
    family,
    attention_masks,
    frames,
    character_cnn,
    elmo,
    cnn_softmax,
    scalar_mix,
    gpt,
    tdmca,
    bert,
    masking,
    heads,
    nezha,
)


def drawings() -> dict[str, str]:
    """File name → content."""
    return {f"{draw.__name__.replace('_', '-')}.svg": draw().svg() for draw in DIAGRAMS}


def main() -> None:
    """Write all files."""
    for name, content in drawings().items():
        (Path(__file__).parent / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
