"""Fine-tune a head on files of JSON lines, and answer with it: from rows to a finished run, and back to rows."""

import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn
from transformers import PreTrainedConfig

from model.architectures.foreign_weights import read_config
from model.architectures.gpt import MODEL_TYPES as DECODERS
from model.architectures.nezha import NezhaConfig
from model.console import say
from model.errors import BadInput, BadRun
from model.files import only_process
from model.tokenization import subwords
from model.types import Split
from training.device import NumberFormat, pick_device
from training.heads.choices import GptChoice, MultipleChoice
from training.heads.data import read_rows
from training.heads.run import HeadRun, describe_file, start_run
from training.heads.spans import AnswerSpans
from training.heads.task import Task
from training.heads.tokens import TokenLabelling
from training.loop import Options, Training, cost_of
from training.pretrained import Start
from training.start_checks import check_embeddings, check_ids_known, check_positions

AnyTask = Task[Any, Any]
# What `task.json` calls a task, and whether its network is a decoder
TASKS: dict[tuple[str, bool], type[AnyTask]] = {
    (kind.name, kind.decoder): kind for kind in (TokenLabelling, AnswerSpans, MultipleChoice, GptChoice)
}


@dataclass(frozen=True, slots=True)
class HeadOptions:
    """init: `offline`, a hub id or a folder. max_length: tokens of a window, stride: from one to the next.

    freeze: train the head alone.
    """

    init: str = "offline"
    max_length: int = 128
    stride: int = 64
    dropout: float = 0.1
    freeze: bool = False
    loop: Options = field(default_factory=Options)


def is_decoder(start: Start) -> bool:
    """Whether the start's config.json is that of a GPT."""
    return read_config(start.folder).model_type in DECODERS


def finetune(
    task: AnyTask, files: dict[Split, Path], *, start: Start, options: HeadOptions, seed: int, out: Path
) -> HeadRun:
    """Train on `files`, keep the weights that did best on dev, and evaluate; the run is in `out`.

    A run that was broken off there goes on.

    Raises:
        BadInput: a row can't be used, or the start doesn't fit.
        BadRun: `out` holds another run.
    """
    started = time.monotonic()
    config = check_start(start, task, options)
    rows = {split: read_rows(path, lambda data: task.parse(data, labelled=True)) for split, path in files.items()}
    task = task.learned_from(rows[Split.TRAIN])
    encode = task.reader(start.folder, max_length=options.max_length, stride=options.stride)
    datasets = {split: encode(each) for split, each in rows.items()}
    for split, dataset in datasets.items():
        n_rows, n_tokens = len(rows[split]), len(dataset.ids())
        say(f"{split}: {n_rows:,} 行，{n_tokens:,} 个词元 | {n_rows:,} rows, {n_tokens:,} tokens")
        for what, number in task.losses(dataset).items():
            if number:
                say(f"{split}: {number:,} {what}")  # in Chinese and English
    unknown = subwords.unknown_id(subwords.read_engine(start.folder))
    check_ids_known(datasets[Split.TRAIN].ids(), unknown=unknown, start=start)
    torch.manual_seed(seed)
    network = task.start(start.folder, dropout=options.dropout)
    if options.freeze:
        cast(Callable[[], None], network.freeze_encoder)()
    run = start_run(
        HeadRun(
            path=out,
            task=task.name,
            arch=config.model_type,
            options={**asdict(options), **task.chosen},
            start={"name": start.name, "sha256": start.sha256},
            seed=seed,
            files={split.value: describe_file(path) for split, path in files.items()},
        )
    )
    with only_process(out):
        progress = Training(
            classifier=network,
            train_set=datasets[Split.TRAIN],
            dev_set=datasets[Split.DEV],
            objective=task,
            options=options.loop,
            seed=seed,
            checkpoint=run.checkpoint_path,
        ).run()
        settled = task.settled(network, datasets[Split.DEV], precision=NumberFormat.FP32)
        figures = {
            split.value: {
                "n": len(rows[split]),
                **settled.evaluate(network, datasets[split], precision=NumberFormat.FP32),
            }
            for split in (Split.DEV, Split.TEST)
            if split in datasets
        }
        save(network, start, run.model_path)
        finished = run.finish(
            found=settled.to_json(),
            figures=figures,
            cost={**cost_of(progress), "total_seconds": round(time.monotonic() - started, 1)},
        )
        shutil.rmtree(run.checkpoint_path)
    return finished


def save(network: nn.Module, start: Start, folder: Path) -> None:
    """Write all that answering needs into `folder`."""
    folder.mkdir(exist_ok=True)
    cast(Callable[[Path], None], network.save)(folder)
    start.copy_tokenizer(folder)


def answer(path: Path, file: Path) -> list[dict[str, Any]]:
    """The rows of `file` with what the run in `path` answers; answers that they have already are not looked at.

    Raises:
        BadRun: there is no finished run.
        BadInput: a row can't be used.
    """
    run = HeadRun.open(path)
    try:
        task = TASKS[run.task, run.arch in DECODERS].from_json(run.found)
        lengths = {name: int(run.options[name]) for name in ("max_length", "stride")}
    except (KeyError, TypeError, ValueError) as error:
        raise BadRun(f"{path} can't be understood ({error!r}); train again into another --out") from None
    rows = read_rows(file, lambda data: task.parse(data, labelled=False))
    examples = task.reader(run.model_path, **lengths)(rows)
    network = task.load(run.model_path).to(pick_device())
    return task.answers(network, examples, precision=NumberFormat.FP32)


def check_start(start: Start, task: AnyTask, options: HeadOptions) -> PreTrainedConfig:
    """Refuse a start that can't be trained for `task` with `options`; its config.

    Raises:
        BadInput: its type is unknown or has no such head, or it has too few positions.
    """
    config = read_config(start.folder)
    if config.model_type in DECODERS and not task.decoder:
        raise BadInput(
            f"--init {options.init} is a {config.model_type} decoder, whose states see only what is before them; "
            f"wenlei finetune {task.name} needs an encoder: bert, ernie, electra or nezha"
        )
    # NEZHA's config names positions too, but it has no table of them: they are relative
    if not isinstance(config, NezhaConfig):
        check_positions(config.max_position_embeddings, init=options.init, max_length=options.max_length)
    check_embeddings(subwords.vocabulary_size(start.folder), start)
    return config
