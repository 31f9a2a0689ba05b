import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from bundles import CHARACTERS
from checkpoints import PUBLISHED, published, save_as_is, save_sharded
from hub import CONVERTED, MAIN, serving
from parity import assert_same_states, random_inputs

from model.architectures.foreign_weights import load_encoder
from model.errors import BadInput
from model.files import sha256_file, write_json
from model.tokenization.subwords import load
from model.types import Text
from training.pretrained import resolve

VOCABULARY = "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(CHARACTERS)]) + "\n"


def start(folder: Path, model_type: str = "bert") -> Path:
    """A checkpoint with a vocab.txt and no tokenizer.json."""
    save_as_is(published(model_type), folder)
    (folder / "vocab.txt").write_text(VOCABULARY, encoding="utf-8")
    return folder


def files(folder: Path) -> dict[str, tuple[str, int]]:
    return {path.name: (sha256_file(path), path.stat().st_mode) for path in folder.iterdir()}


@pytest.mark.parametrize("model_type", PUBLISHED)
def test_a_folder_of_any_family_is_a_start(model_type: str, tmp_path: Path) -> None:
    folder = start(tmp_path / "mine", model_type)
    before = files(folder)
    found = resolve(str(folder), cache=tmp_path / "cache")
    assert (found.name, found.model_type) == ("mine", model_type)
    assert found.sha256 == sha256_file(folder / "model.safetensors")
    assert files(folder) == before  # the tokenizer is written into the cache
    (encoded,) = load(found.folder, max_length=32).encode([Text("房间好")])
    assert encoded.inputs["input_ids"].min() > 1  # none is unknown
    assert load_encoder(found.folder).config.model_type == model_type


def test_a_tokenizer_is_made_once_and_again_for_another_vocabulary(tmp_path: Path) -> None:
    folder = start(tmp_path / "mine")
    first = resolve(str(folder), cache=tmp_path / "cache").folder
    made = (first / "tokenizer.json").stat().st_mtime_ns
    again = resolve(str(folder), cache=tmp_path / "cache").folder
    assert again == first
    assert (again / "tokenizer.json").stat().st_mtime_ns == made
    (folder / "vocab.txt").write_text(VOCABULARY + "新\n", encoding="utf-8")
    other = resolve(str(folder), cache=tmp_path / "cache").folder
    assert other != first
    assert load(other, max_length=32).vocabulary_size == load(first, max_length=32).vocabulary_size + 1


def test_shards_stay_shards_behind_a_tokenizer_that_was_made(tmp_path: Path) -> None:
    reference = published("ernie")
    save_sharded(reference, tmp_path / "mine")
    (tmp_path / "mine" / "vocab.txt").write_text(VOCABULARY, encoding="utf-8")
    found = resolve(str(tmp_path / "mine"), cache=tmp_path / "cache")
    assert_same_states(load_encoder(found.folder), reference, random_inputs(2, 5, n_tokens=60))
    lost = next((tmp_path / "mine").glob("model-*.safetensors"))
    lost.write_bytes(lost.read_bytes() + b" ")
    assert resolve(str(tmp_path / "mine"), cache=tmp_path / "cache").sha256 != found.sha256


def test_what_a_pretraining_left_is_a_start_once_it_is_done(tmp_path: Path) -> None:
    run = tmp_path / "run"
    start(run / "model", "nezha")
    write_json(run / "pretrain.json", {"status": "running"})
    with pytest.raises(BadInput, match=r"the pretraining is not done \(running\); .* --resume"):
        resolve(str(run), cache=tmp_path / "cache")
    write_json(run / "pretrain.json", {"status": "done"})
    found = resolve(str(run), cache=tmp_path / "cache")
    assert (found.name, found.model_type) == ("run", "nezha")
    (run / "pretrain.json").write_text("[]")
    with pytest.raises(BadInput, match=r"pretrain\.json can't be read"):
        resolve(str(run), cache=tmp_path / "cache")


@pytest.mark.parametrize(
    ("lost", "message"),
    [
        ("config.json", r"has no config\.json"),
        ("model.safetensors", r"has no model\.safetensors"),
        ("vocab.txt", r"has no tokenizer\.json"),
    ],
)
def test_a_folder_that_lacks_a_part_is_refused(lost: str, message: str, tmp_path: Path) -> None:
    folder = start(tmp_path / "mine")
    (folder / lost).unlink()
    with pytest.raises(BadInput, match=message):
        resolve(str(folder), cache=tmp_path / "cache")


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    folder = start(tmp_path / "mine")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(BadInput, match=r"has pytorch_model\.bin and no model\.safetensors; a pickle can run any code"):
        resolve(str(folder), cache=tmp_path / "cache")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder whose models, OWNER/NAME, a hub on this machine shows."""
    with serving(tmp_path / "hub") as url:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", url)
        template = f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub-cache"))
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        yield tmp_path / "hub" / MAIN


def test_a_model_of_the_hub_is_kept_whole_and_read_without_it(hub: Path, tmp_path: Path) -> None:
    folder = start(hub / "maker" / "model", "ernie")
    (folder / "pytorch_model.bin").write_bytes(b"never fetched")
    found = resolve("maker/model", cache=tmp_path / "cache")
    assert (found.name, found.model_type) == ("maker/model", "ernie")
    assert sha256_file(folder / "model.safetensors") == found.sha256  # its heads too, for pretraining
    assert not (found.folder / "pytorch_model.bin").exists()
    assert load(found.folder, max_length=32).vocabulary_size == len(VOCABULARY.split())
    shutil.rmtree(hub)
    assert resolve("maker/model", cache=tmp_path / "cache") == found


def test_weights_that_the_hub_s_converter_has_made_safe_are_taken(hub: Path, tmp_path: Path) -> None:
    folder = start(hub / "maker" / "model")
    converted = hub.parent / CONVERTED / "maker" / "model"
    shutil.copytree(folder, converted)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    found = resolve("maker/model", cache=tmp_path / "cache")
    assert found.sha256 == sha256_file(converted / "model.safetensors")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("no weights", r"the hub has no model\.safetensors of it, and a pickle can run any code"),
        ("roberta", "it is of type roberta; bert, ernie, electra, nezha, gpt2, openai-gpt, wenlei-elmo are taken"),
        ("no vocabulary", r"the hub has no tokenizer\.json and no vocab\.txt"),
        ("another name", r"--init maker/model: neither a folder nor a model that the hub gives \("),
    ],
)
def test_a_model_of_the_hub_that_can_not_be_used_is_refused(
    change: str, message: str, hub: Path, tmp_path: Path
) -> None:
    folder = start(hub / "maker" / "model")
    if change == "no weights":
        (folder / "model.safetensors").unlink()
    elif change == "roberta":
        write_json(folder / "config.json", {"model_type": "roberta"})
    elif change == "no vocabulary":
        (folder / "vocab.txt").unlink()
    else:
        folder.rename(hub / "maker" / "other")
    with pytest.raises(BadInput, match=message):
        resolve("maker/model", cache=tmp_path / "cache")
    assert not any((tmp_path / "cache").iterdir())
