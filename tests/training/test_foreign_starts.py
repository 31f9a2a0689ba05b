from pathlib import Path

import pytest
from bundles import CHARACTERS
from checkpoints import ENCODERS, N_TOKENS, PUBLISHED, save_old

from model.architectures.bert import Pooling
from model.bundle import open_bundle
from model.runtime.base import classify
from model.runtime.onnx import OnnxClassifier
from model.snapshot import Snapshot
from model.types import Text
from training.device import NumberFormat
from training.export import export_run
from training.finetune import FinetuneOptions, finetune
from training.kinds import BertKind, GptKind, Kind
from training.loop import Options

LOOP = Options(epochs=1, batch_size=64, learning_rate=2e-3, head_learning_rate=2e-3, precision=NumberFormat.FP32)


KINDS: dict[str, Kind] = {
    **{
        model_type: BertKind(arch="nezha" if model_type == "nezha" else "bert", pooling=pooling)
        for model_type, pooling in zip(ENCODERS, Pooling, strict=True)
    },
    "gpt2": GptKind(),
    "openai-gpt": GptKind(),
}


@pytest.mark.parametrize("model_type", PUBLISHED)
def test_an_old_checkpoint_is_trained_exported_and_served(model_type: str, snapshot: Snapshot, tmp_path: Path) -> None:
    save_old(PUBLISHED[model_type](), tmp_path / "old")
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *dict.fromkeys(CHARACTERS)]
    assert len(tokens) <= N_TOKENS
    (tmp_path / "old" / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    run = finetune(
        snapshot,
        options=FinetuneOptions(init=str(tmp_path / "old"), max_length=32, limit=64, loop=LOOP, freeze=True),
        kind=KINDS[model_type],
        seed=1,
        out=tmp_path / "run",
        cache=tmp_path / "cache",
    )
    bundle = export_run(run, out=tmp_path / "bundle", precisions=["fp32"], snapshot=snapshot)  # through its gate
    served = OnnxClassifier.load(open_bundle(bundle.path), precision="fp32")
    (prediction,) = classify(served, [Text("房间很好")])
    assert prediction.label in snapshot.taxonomy.labels
