"""One look through a corpus before anything else: it can be read, how much there is, and which documents are held out.

Which ones follows from the documents and the seed alone, so that models of every architecture and vocabulary are
compared on the same texts. No copy of a held-out document is left in the train part.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from model.console import progress
from model.errors import BadInput
from training.pretrain.corpus import Corpus

HELD_OUT_SHARE = 0.01  # of the characters
MOST_HELD_OUT = 2_000_000  # characters; more makes evaluation slower, and figures hardly surer
_FEWEST_HELD_OUT = 2  # documents, where there are twice as many: next-sentence prediction needs another one


@dataclass(frozen=True, slots=True)
class Survey:
    """What is in a corpus. held_out: hashes of the documents that no model is trained on."""

    documents: int
    characters: int
    held_out: frozenset[bytes]
    held_out_characters: int
    share: float
    seed: int

    def train(self, corpus: Corpus, advance: Callable[[float], None] | None = None) -> Iterator[list[str]]:
        """The documents to train on."""
        return (document for document, hashed in self.hashed(corpus, advance) if hashed not in self.held_out)

    def hashed(
        self, corpus: Corpus, advance: Callable[[float], None] | None = None
    ) -> Iterator[tuple[list[str], bytes]]:
        """All documents with their hashes."""
        return ((document, document_hash(document, self.seed)) for document in corpus.documents(advance))

    def to_json(self) -> dict[str, Any]:
        """The figures of it, for manifests."""
        return {
            "documents": self.documents,
            "characters": self.characters,
            "held_out_documents": len(self.held_out),
            "held_out_characters": self.held_out_characters,
            "held_out_share": self.share,
            "seed": self.seed,
        }


def survey(corpus: Corpus, *, seed: int, share: float = HELD_OUT_SHARE, most: int = MOST_HELD_OUT) -> Survey:
    """Read `corpus` once; hold out about `share` of its characters, at most `most`, and at least one document.

    Raises:
        BadInput: a file can't be read, or there are fewer than two different documents.
    """
    if not 0 < share < 1:
        raise BadInput(
            f"a held-out share of {share} leaves nothing to train on, or to evaluate on; take {HELD_OUT_SHARE}"
        )
    documents = characters = kept = 0
    least: list[tuple[int, int]] = []  # those of the least hashes, as a heap: (-hash, characters), the greatest first
    known: set[int] = set()
    with progress("读语料 | reading the corpus (MB)", corpus.bytes / 1e6) as advance:
        for document in corpus.documents(lambda read: advance(read / 1e6)):
            size = sum(map(len, document))
            documents, characters = documents + 1, characters + size
            number = int.from_bytes(document_hash(document, seed))
            if number in known or (kept >= most and number > -least[0][0] and len(least) > _FEWEST_HELD_OUT):
                continue
            heapq.heappush(least, (-number, size))
            known.add(number)
            kept += size
            while len(least) > _FEWEST_HELD_OUT + 1 and kept - least[0][1] >= most:
                number, size = heapq.heappop(least)
                known.remove(-number)
                kept -= size
    if len(least) < 2:
        raise BadInput(
            f"the corpus has {len(least)} different documents ({characters:,} characters), and one has to be held out; "
            "part documents by blank lines, tell with --documents where they end, or give more text"
        )
    chosen = _least(least, goal=min(share * characters, most), fewest=min(_FEWEST_HELD_OUT, len(least) // 2))
    return Survey(
        documents=documents,
        characters=characters,
        held_out=frozenset((-number).to_bytes(_HASH_BYTES) for number, _ in chosen),
        held_out_characters=sum(size for _, size in chosen),
        share=share,
        seed=seed,
    )


_HASH_BYTES = 16


def document_hash(document: list[str], seed: int) -> bytes:
    """16 bytes that follow from the paragraphs and the seed."""
    return blake2b("\n".join(document).encode(), digest_size=_HASH_BYTES, key=str(seed).encode()).digest()


def _least(heap: list[tuple[int, int]], *, goal: float, fewest: int) -> list[tuple[int, int]]:
    """Those of the least hashes, `fewest` or as many as stay within `goal` characters."""
    chosen: list[tuple[int, int]] = []
    total = 0
    for number, size in sorted(heap, reverse=True):
        if len(chosen) >= fewest and (total + size > goal or len(chosen) == len(heap) - 1):
            break  # some are left to train on
        chosen.append((number, size))
        total += size
    return chosen
