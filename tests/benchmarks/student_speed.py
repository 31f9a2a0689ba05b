"""How much smaller and faster bundles of students are than BERT-base in the same engine: batch 1, one thread.

    python tests/benchmarks/student_speed.py --home SCRATCH --snapshot SNAPSHOT --bundle BUNDLE...

BERT-base is 12 x 768 with 21,128 tokens, of random weights: one step of `wenlei train`, and `wenlei export`, once, in
SCRATCH. Then `wenlei bench` of each in turn, round after round. Prints a Markdown table of medians.
"""

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

from commands import finished, printed
from transformers import BertConfig, BertModel

from model.files import write_text

N_TOKENS = 21_128
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
FIRST_CHARACTER = 0x4E00


def main() -> None:
    """Measure all bundles and print a table."""
    options = parse()
    options.home.mkdir(parents=True, exist_ok=True)
    base = bert_base(options.home, options.snapshot)
    rounds = [
        {bundle: bench(options.home, bundle, options.tokens) for bundle in (base, *options.bundle)}
        for _ in range(options.rounds)
    ]
    sys.stdout.write(
        "| bundle | precision | file MiB | times smaller | p50 ms | times faster |\n|---|---|---|---|---|---|\n"
    )
    for bundle in (base, *options.bundle):
        for precision in rounds[0][bundle]:
            sys.stdout.write(line(bundle, precision, base, rounds) + "\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, help="a folder for BERT-base")
    parser.add_argument("--snapshot", type=Path, required=True, help="whose labels BERT-base gets")
    parser.add_argument("--bundle", type=Path, nargs="+", required=True)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def bert_base(home: Path, snapshot: Path) -> Path:
    """A bundle of the size of BERT-base."""
    start, run, bundle = home / "bert-base-start", home / "bert-base-run", home / "bert-base"
    if not (start / "vocab.txt").exists():  # what is written last
        BertModel(BertConfig(vocab_size=N_TOKENS)).save_pretrained(start)
        characters = [chr(FIRST_CHARACTER + number) for number in range(N_TOKENS - len(SPECIAL_TOKENS))]
        write_text(start / "vocab.txt", "".join(f"{token}\n" for token in (*SPECIAL_TOKENS, *characters)))
    given = ("--arch", "bert", "--init", start, "--epochs", 1, "--max-length", 32)
    finished(home, run, "run.json", "train", "--snapshot", snapshot, "--limit", 32, *given)
    if not bundle.exists():
        printed(home, "export", run, "--out", bundle, "--precision", "fp32")
    return bundle


def bench(home: Path, bundle: Path, tokens: int) -> dict[str, Any]:
    """The figures of each precision."""
    precisions: dict[str, Any] = printed(home, "bench", "--bundle", bundle, "--tokens", tokens)["precisions"]
    return precisions


def line(bundle: Path, precision: str, base: Path, rounds: list[dict[Path, Any]]) -> str:
    """One bundle beside BERT-base in fp32: the ratio of times is the median of the rounds' ratios."""
    size, milliseconds = (
        statistics.median(each[bundle][precision][figure] for each in rounds) for figure in ("file_mib", "p50_ms")
    )
    smaller = rounds[0][base]["fp32"]["file_mib"] / size
    faster = statistics.median(each[base]["fp32"]["p50_ms"] / each[bundle][precision]["p50_ms"] for each in rounds)
    return f"| {bundle.name} | {precision} | {size:.1f} | {smaller:.1f}x | {milliseconds:.2f} | {faster:.1f}x |"


if __name__ == "__main__":
    main()
