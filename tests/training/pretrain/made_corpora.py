"""Made-up corpora, character vocabularies and token stores: small, and never the same sentence twice by chance."""

from pathlib import Path

import numpy as np
from bundles import character_tokenizer

from training.pretrain.corpus import Corpus
from training.pretrain.prepare import prepare
from training.pretrain.store import TokenStore
from training.pretrain.survey import Survey, survey

CHARACTERS = (
    "天地人你我他日月水火山石田土木禾上下左右大小多少来去开关前后早晚春夏秋冬风云雨雪花草树鸟虫鱼马牛羊书画学习"
)
ENDS = "。！？；"


def made_documents(n: int, *, seed: int = 0, most_sentences: int = 12, most_characters: int = 30) -> list[list[str]]:
    """`n` documents of one to three paragraphs."""
    random = np.random.default_rng(seed)
    characters = np.array(list(CHARACTERS))
    documents = []
    for _ in range(n):
        texts = [
            "".join(random.choice(characters, random.integers(2, most_characters))) + ENDS[random.integers(len(ENDS))]
            for _ in range(random.integers(1, most_sentences + 1))
        ]
        cuts = sorted(random.integers(0, len(texts) + 1, 2))
        paragraphs = ["".join(part) for part in (texts[: cuts[0]], texts[cuts[0] : cuts[1]], texts[cuts[1] :])]
        documents.append([paragraph for paragraph in paragraphs if paragraph])
    return documents


def written(path: Path, documents: list[list[str]]) -> Path:
    """The documents as a text file, a blank line behind each."""
    path.write_text("".join("\n".join(document) + "\n\n" for document in documents), encoding="utf-8")
    return path


def vocabulary(folder: Path, characters: str = CHARACTERS + ENDS) -> Path:
    """A folder with a tokenizer of one token a character."""
    folder.mkdir()
    character_tokenizer(characters).save(str(folder / "tokenizer.json"))
    return folder


def opened(folder: Path, documents: list[list[str]], *, seed: int = 1, share: float = 0.05) -> tuple[Corpus, Survey]:
    """A corpus of the documents in one file, and what is in it."""
    corpus = Corpus.open([written(folder / "corpus.txt", documents)])
    return corpus, survey(corpus, seed=seed, share=share)


def made_store(
    folder: Path, documents: list[list[str]], *, part_tokens: int = 8_000_000, words: bool = False
) -> TokenStore:
    """A prepared store of the documents, in tokens of one character."""
    return prepare(
        *opened(folder, documents),
        tokenizer=vocabulary(folder / "tokenizer"),
        folder=folder / "tokens",
        part_tokens=part_tokens,
        words=words,
    )


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
